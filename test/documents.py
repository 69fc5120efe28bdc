"""What the pages in docs/ tell administrators to apply: each block of YAML, TOML and JSON is one, and refers to what is there."""

import json
import os
import re
import tomllib

import yaml


def blocks(text, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def objects(text):
    """Of Kubernetes, in the page."""
    return [one for block in blocks(text, "yaml") for one in yaml.safe_load_all(block)]


def incomplete(one):
    missing = [key for key in ("apiVersion", "kind") if not one.get(key)]
    return missing + ([] if one.get("metadata", {}).get("name") else ["metadata.name"])


def unknown_names(everything):
    """What pods and others refer to by name, and the page lacks."""
    there = {(one["kind"], one["metadata"]["name"]) for one in everything}

    def wanted():
        for one in everything:
            spec = one.get("spec", {})
            for claim in spec.get("resourceClaims", ()):
                yield "ResourceClaimTemplate", claim["resourceClaimTemplateName"]
            for request in spec.get("spec", {}).get("devices", {}).get("requests", ()):
                yield "DeviceClass", request["exactly"]["deviceClassName"]
            for volume in spec.get("template", {}).get("spec", {}).get("volumes", ()):
                if "configMap" in volume:
                    yield "ConfigMap", volume["configMap"]["name"]
            if "policyName" in spec:
                yield "ValidatingAdmissionPolicy", spec["policyName"]
            if one["kind"] == "Pod" and "namespace" in one["metadata"]:
                yield "Namespace", one["metadata"]["namespace"]

    return sorted(f"{kind} {name}" for kind, name in set(wanted()) - there)


def unmounted(everything):
    """Mounts of a volume that the pod does not have, and claims that it does not make."""
    for one in everything:
        pod = one["spec"]["template"]["spec"] if one["kind"] == "DaemonSet" else one.get("spec", {})
        if "containers" not in pod:
            continue
        has = {thing["name"] for kind in ("volumes", "resourceClaims") for thing in pod.get(kind, ())}
        for container in pod["containers"]:
            uses = container.get("volumeMounts", []) + container.get("resources", {}).get("claims", [])
            yield from (use["name"] for use in uses if use["name"] not in has)


def untaken(everything):
    """Pods whose annotation is not what the page's policy wants of their namespace."""
    given = {one["metadata"]["name"]: one["metadata"].get("annotations", {}).get("rdmaquota.io/tenant")
             for one in everything if one["kind"] == "Namespace"}
    for one in everything:
        if one["kind"] == "Pod":
            asked = one["metadata"].get("annotations", {}).get("cdi-devices.nri.io/pod", "[]")
            if json.loads(asked) != [f"rdmaquota.io/tenant={given.get(one['metadata'].get('namespace'))}"]:
                yield one["metadata"]["name"]


def problems_of(text):
    everything = objects(text)
    yield from (f"{one.get('kind')}: no {', '.join(incomplete(one))}" for one in everything if incomplete(one))
    for one in everything:
        for name, data in one.get("data", {}).items():
            if name.endswith(".json"):
                json.loads(data)
    for block in blocks(text, "toml"):
        tomllib.loads(block)
    yield from (f"there is no {name}" for name in unknown_names(everything))
    yield from (f"there is no volume or claim {name}" for name in unmounted(everything))
    yield from (f"pod {name} does not ask for its namespace's tenant" for name in untaken(everything))


def wrong_blocks(root):
    directory = os.path.join(root, "docs")
    for name in sorted(os.listdir(directory)):
        if not name.endswith(".md"):
            continue
        with open(os.path.join(directory, name), encoding="utf-8") as file:
            text = file.read()
        try:
            yield from (f"docs/{name}: {problem}" for problem in problems_of(text))
        except (ValueError, yaml.YAMLError, KeyError, TypeError) as error:
            yield f"docs/{name}: {type(error).__name__}: {error}"
