// base.mjs FILE KUBECTL: whether what `kubectl kustomize` makes of the base (FILE) is right: by the JSON schemas of Kubernetes' API
// (kubernetes-models), by kubectl's own types (an unknown field does not come back from it), and by what refers to what. Prints
// 'ok - NAME' or 'not ok - NAME'; the last line is 'N passed, N failed'.
import {execFileSync} from 'node:child_process';
import {readFileSync} from 'node:fs';
import YAML from 'yaml';

const [file, kubectl] = process.argv.slice(2);
const objects = YAML.parseAllDocuments(readFileSync(file, 'utf8')).map(one => one.toJS());
const CLUSTER_WIDE = ['Namespace', 'ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'];

let passed = 0, failed = 0;
function check(name, problems) {
  console.log(`${problems.length ? 'not ok' : 'ok'} - ${name}`);
  for (const problem of problems) console.log(`    # ${problem}`);
  problems.length ? ++failed : ++passed;
}

async function schemaProblems(object) {
  const models = await import(`kubernetes-models/${object.apiVersion}`);
  try { new models[object.kind](object).validate(); return []; } catch (error) { return [error.message]; }
}

// Paths of `given` that `back` lacks.
function* lost(given, back, path) {
  if (given === null || typeof given !== 'object') return;
  for (const [key, value] of Object.entries(given))
    if (back?.[key] === undefined) yield `${path}.${key}`;
    else yield* lost(value, back[key], `${path}.${key}`);
}

// `set env --local` reads an object into its type, adds a variable, and writes it.
function unknownFields(object) {
  const text = execFileSync(kubectl, ['set', 'env', '--local', '-f', '-', '-o', 'json', 'CHECKED=yes'], {input: JSON.stringify(object)});
  return [...lost(object, JSON.parse(text), object.kind)];
}

function unmounted(pod) {
  const volumes = (pod.volumes ?? []).map(one => one.name);
  const containers = [...pod.containers, ...(pod.initContainers ?? [])];
  return containers.flatMap(one => one.volumeMounts ?? []).filter(one => !volumes.includes(one.name)).map(one => `no volume ${one.name}`);
}

function missingMaps(pod) {
  const maps = objects.filter(one => one.kind === 'ConfigMap').map(one => one.metadata.name);
  return (pod.volumes ?? []).filter(one => one.configMap && !maps.includes(one.configMap.name)).map(one => `no ConfigMap ${one.configMap.name}`);
}

check('there are the objects of the base', ['Namespace rdmaquota', 'DaemonSet rdmaquota-node', 'DaemonSet nri-plugin-device-injector',
    'ValidatingAdmissionPolicy rdmaquota-tenant', 'ValidatingAdmissionPolicyBinding rdmaquota-tenant']
  .filter(name => !objects.some(one => `${one.kind} ${one.metadata.name}` === name)));
for (const object of objects) check(`${object.kind} ${object.metadata.name} fits its schema`, await schemaProblems(object));
check('what belongs to the cluster has no namespace, all else the one of the base',
  objects.filter(one => one.metadata.namespace !== (CLUSTER_WIDE.includes(one.kind) ? undefined : 'rdmaquota')).map(one => `${one.kind} ${one.metadata.name}`));
for (const set of objects.filter(one => one.kind === 'DaemonSet')) {
  const template = set.spec.template, {matchLabels} = set.spec.selector;
  check(`${set.metadata.name} has no field that kubectl does not know`, unknownFields(set));
  check(`${set.metadata.name} mounts volumes that it has`, [...unmounted(template.spec), ...missingMaps(template.spec)]);
  check(`${set.metadata.name} selects its own pods`, Object.entries(matchLabels).filter(([key, value]) => template.metadata.labels[key] !== value));
}
const policy = objects.find(one => one.kind === 'ConfigMap').data;
check('the ConfigMap has the policy, and each of its tenants in it', policy.tenants.replace(/#.*/g, '').split(/\s+/).filter(Boolean)
  .filter(name => !policy['rdmaquota.toml'].includes(`[tenant.${name}]`)));
const images = objects.filter(one => one.kind === 'DaemonSet').flatMap(one => [...one.spec.template.spec.containers, ...(one.spec.template.spec.initContainers ?? [])]).map(one => one.image);
check('every image has a registry and a tag', images.filter(image => !/^[^/]+\.[^/]+\/.+:[^/]+$/.test(image)));

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
