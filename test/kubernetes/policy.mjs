// policy.mjs FILE: asks the ValidatingAdmissionPolicy of admission.yaml about requests, as an API server does: which rules
// see a request, then its variables, then its validations until one is false. The CEL is evaluated by cel-js, not by the
// library of Kubernetes. Prints 'ok - NAME' or 'not ok - NAME'; the last line is 'N passed, N failed'.
import {readFileSync} from 'node:fs';
import {Environment} from '@marcbachmann/cel-js';
import YAML from 'yaml';

const documents = YAML.parseAllDocuments(readFileSync(process.argv[2], 'utf8')).map(one => one.toJS());
const policy = documents.find(one => one.kind === 'ValidatingAdmissionPolicy').spec;
const cel = new Environment({unlistedVariablesAreDyn: true});

const annotated = (kind, annotations) => ({kind, metadata: annotations ? {name: 'x', annotations} : {name: 'x'}});

function sees(request) {
  return policy.matchConstraints.resourceRules.some(rule => rule.operations.includes(request.operation)
      && rule.resources.includes(request.resource));
}

// The message of the first validation that is false; '' if there is none.
function refusal(request) {
  if (!sees(request)) return '';
  const kind = request.kind ?? 'Pod';
  const context = {
    request: {operation: request.operation, kind: {group: '', version: 'v1', kind}},
    object: annotated(kind, request.asked),
    oldObject: request.operation === 'CREATE' ? null : annotated(kind, request.before),
    namespaceObject: annotated('Namespace', request.namespace),
    variables: {},
  };
  for (const {name, expression} of policy.variables) context.variables[name] = cel.evaluate(expression, context);
  const broken = policy.validations.find(one => cel.evaluate(one.expression, context) !== true);
  if (!broken) return '';
  const message = broken.messageExpression ? cel.evaluate(broken.messageExpression, context) : broken.message;
  if (!/^\S.*$/.test(message)) throw new Error(`the message is '${message}'`);
  return message;
}

let passed = 0, failed = 0;
function judge(name, good, told) {
  console.log(`${good ? 'ok' : 'not ok'} - ${name}`);
  if (!good) console.log(`    # ${told}`);
  good ? ++passed : ++failed;
}
function check(name, request, admitted) {
  let message;
  try { message = refusal(request); } catch (error) { return judge(name, false, error.message.split('\n')[0]); }
  judge(name, (message === '') === admitted, message || 'it is admitted');
}
const admits = (name, request) => check(`${name} is admitted`, request, true);
const refuses = (name, request) => check(`${name} is refused`, request, false);

const key = 'cdi-devices.nri.io/pod';
const device = tenant => ({[key]: `["rdmaquota.io/tenant=${tenant}"]`});
const of = tenant => ({'rdmaquota.io/tenant': tenant});
const blue = device('blue'), mounts = {'mounts.nri.io/pod': 'x'};
const created = (namespace, asked) => ({operation: 'CREATE', resource: 'pods', namespace, asked});
const updated = (before, asked, namespace = of('blue'), resource = 'pods') =>
  ({operation: 'UPDATE', resource, namespace, before, asked});
const bound = (asked, namespace = of('blue'), resource = 'pods/binding') =>
  ({operation: 'CREATE', kind: 'Binding', resource, namespace, asked});

// --- a pod is created
admits("a pod with its namespace's tenant", created(of('blue'), blue));
admits('one of a tenant below another', created(of('physics:atlas'), device('physics:atlas')));
admits('one with an annotation that no plugin reads', created(of('blue'), {...blue, 'prometheus.io/scrape': 'true'}));
refuses('one with no annotation', created(of('blue')));
refuses('one with other annotations only', created(of('blue'), {'a.example/b': 'c'}));
refuses("one with another's tenant", created(of('blue'), device('red')));
refuses('one with a second device', created(of('blue'), {[key]: '["rdmaquota.io/tenant=blue","vendor.com/gpu=0"]'}));
refuses('one with no device', created(of('blue'), {[key]: '[]'}));
for (const name of ['mounts.nri.io/pod', 'devices.nri.io', 'devices.nri.io/container.main', 'cdi-devices.nri.io/container.main',
    'cdi-devices.noderesource.dev/pod', 'required-plugins.noderesource.dev/pod', 'nri.io', 'nri.io/x', 'noderesource.dev'])
  refuses(`one that asks for ${name} too`, created(of('blue'), {...blue, [name]: 'x'}));
for (const name of ['my-nri.io.example.com/x', 'mynri.io/x', 'example.com/x.nri.io', 'example.com/nri.io', 'noderesource.dev.example/x'])
  admits(`one with ${name}, which only looks like it,`, created(of('blue'), {...blue, [name]: 'x'}));
admits('without a tenant, a pod with no annotation', created(undefined));
admits('one with another annotation', created({}, {'a.example/b': 'c'}));
refuses('one that asks for a tenant', created(undefined, blue));
refuses('one that asks for the empty tenant', created(of(''), device('')));
refuses('one that asks for mounts', created(undefined, mounts));

// --- a pod is changed: by itself, by its status, by what binds it to a node
for (const resource of ['pods', 'pods/status']) {
  const change = (before, asked, namespace) => updated(before, asked, namespace, resource);
  admits(`${resource}: a change of something else`, change(blue, {...blue, 'a.example/b': 'c'}));
  admits(`${resource}: one of a pod from before, which has what is refused now,`, change(mounts, mounts));
  admits(`${resource}: one of a pod that has no annotation`, change());
  admits(`${resource}: one where the namespace has lost its tenant`, change(blue, blue, {}));
  refuses(`${resource}: another tenant`, change(blue, device('red')));
  refuses(`${resource}: a tenant that it had not`, change(undefined, blue));
  refuses(`${resource}: none any more`, change(blue));
  refuses(`${resource}: mounts, too`, change(blue, {...blue, ...mounts}));
  refuses(`${resource}: mounts in place of the tenant`, change(blue, mounts));
}
for (const resource of ['pods/binding', 'bindings']) {
  admits(`${resource}: what the scheduler does`, bound(undefined, of('blue'), resource));
  admits(`${resource}: the same where there is no tenant`, bound(undefined, undefined, resource));
  admits(`${resource}: another annotation`, bound({'a.example/b': 'c'}, of('blue'), resource));
  refuses(`${resource}: mounts`, bound(mounts, of('blue'), resource));
  refuses(`${resource}: another tenant`, bound(device('red'), of('blue'), resource));
  refuses(`${resource}: a tenant where there is none`, bound(blue, undefined, resource));
}

console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
