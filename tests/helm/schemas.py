# SPDX-License-Identifier: Apache-2.0
"""JSON schemas for kubeconform, out of the documents that tests/helm/documents fetches.

A schema is strict: a field that its document does not name is an error, as it is for the API server with
`kubectl apply --server-side`.
"""

import functools
import json

import yaml

# Where kubeconform looks for them in a folder. The group of v1 is v1 to it.
LOCATION = "{{.ResourceKind}}-{{.Group}}-{{.ResourceAPIVersion}}.json"

GENERATED = "io.k8s.apimachinery.pkg."
# Both may be numbers, too, which version 2 of OpenAPI cannot say.
NUMBER_OR_TEXT = {"oneOf": [{"type": "string"}, {"type": "number"}]}
WHOLE_OR_TEXT = {"oneOf": [{"type": "string"}, {"type": "integer"}]}
DIFFERENT = {GENERATED + "api.resource.Quantity": NUMBER_OR_TEXT, GENERATED + "util.intstr.IntOrString": WHOLE_OR_TEXT}


def strict(schema):
    """The schema, whose objects have no other fields than those that it names."""
    if isinstance(schema, list):
        return [strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: {name: strict(each) for name, each in value.items()} if key == "properties" else strict(value)
            for key, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string"):
        made.pop("type", None)
    elif "properties" in schema and not schema.get("x-kubernetes-preserve-unknown-fields"):
        made.setdefault("additionalProperties", False)
    return made


def identified(schema, group, version, kind):
    """The schema of a whole object, which has to say what it is."""
    api_version = f"{group}/{version}" if group else version
    return {**schema, "required": sorted({"apiVersion", "kind", *schema.get("required", [])}), "properties": {
        **schema["properties"], "apiVersion": {"enum": [api_version]}, "kind": {"enum": [kind]}}}


def names_in(schema):
    """The definitions that a schema refers to."""
    if isinstance(schema, list):
        return {name for each in schema for name in names_in(each)}
    if not isinstance(schema, dict):
        return set()
    found = {name for each in schema.values() for name in names_in(each)}
    if isinstance(schema.get("$ref"), str):
        found.add(schema["$ref"].rpartition("/")[2])
    return found


class Kubernetes:
    """The kinds of one release."""

    def __init__(self, document):
        definitions = json.loads(document.read_text(encoding="utf-8"))["definitions"]
        self.definitions = {name: DIFFERENT.get(name) or strict(each) for name, each in definitions.items()}
        self.kinds = {(kind["group"], kind["version"], kind["kind"]): name
                      for name, each in definitions.items()
                      for kind in each.get("x-kubernetes-group-version-kind", ())}

    def schema(self, group, version, kind):
        """None: the release has no such kind."""
        name = self.kinds.get((group, version, kind))
        if name is None:
            return None
        needed, wanted = {}, names_in(self.definitions[name])
        while wanted:
            each = wanted.pop()
            needed[each] = self.definitions[each]
            wanted |= names_in(needed[each]) - set(needed)
        return {**identified(self.definitions[name], group, version, kind), "definitions": needed}


@functools.lru_cache(maxsize=None)
def kubernetes(document):
    return Kubernetes(document)


@functools.lru_cache(maxsize=None)
def custom(document):
    """{(group, version, kind): schema} of a CustomResourceDefinition."""
    spec = yaml.safe_load(document.read_text(encoding="utf-8"))["spec"]
    return {(spec["group"], each["name"], spec["names"]["kind"]): identified(
        strict(each["schema"]["openAPIV3Schema"]), spec["group"], each["name"], spec["names"]["kind"])
        for each in spec["versions"]}


def write(folder, documents, release, manifests):
    """Writes the schemas of the manifests' kinds that a release such as "1.36" and the custom resources have."""
    customs = {kind: schema for each in sorted(documents.glob("*.yaml")) for kind, schema in custom(each).items()}
    for api_version, kind in {(one["apiVersion"], one["kind"]) for one in manifests}:
        group, _, version = api_version.rpartition("/")
        found = kubernetes(documents / f"kubernetes-{release}.json").schema(group, version, kind)
        schema = found or customs.get((group, version, kind))
        if schema is not None:
            (folder / f"{kind.lower()}-{group or version}-{version}.json").write_text(json.dumps(schema), encoding="utf-8")
