"""Validates Kubernetes manifests: validate.py FILE.yaml... prints one line per resource, and fails if one is invalid.

Kubernetes' own kinds are checked by kubernetes-validate, others by the schemas of their CustomResourceDefinitions, which
tools/setup.sh deploy puts into .toolchain/deploy-crds. Unknown fields are errors. Rules in CEL are not evaluated.
"""

import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

VERSION = "1.37"
CRDS = pathlib.Path(__file__).parents[2] / ".toolchain/deploy-crds"


def strict(schema):
    """Converts a definition's schema to a JSON schema that rejects fields which the API server would drop."""
    if isinstance(schema, list):
        return [strict(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: strict(value) for name, value in schema.items()}
    if schema.get("x-kubernetes-int-or-string") is True:
        return {"type": ["integer", "string"]}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if isinstance(schema.get("properties"), dict) and schema.get("type") == "object" and not is_open:
        made.setdefault("additionalProperties", False)
    return made


def read_definitions():
    """Returns the schemas of the definitions by apiVersion and kind."""
    schemas = {}
    for path in CRDS.glob("*.yaml"):
        for definition in yaml.safe_load_all(path.read_text()):
            spec = definition["spec"]
            for version in spec["versions"]:
                schema = strict(version["schema"]["openAPIV3Schema"])
                for name in ("apiVersion", "kind", "metadata"):
                    schema["properties"].setdefault(name, {})
                schemas[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return schemas


def check(resource, schemas):
    """Returns a description of the check that passed; raises jsonschema's error otherwise."""
    schema = schemas.get((resource["apiVersion"], resource["kind"]))
    if schema is None:
        return f"Kubernetes {kubernetes_validate.validate(resource, VERSION, strict=True)}"
    jsonschema.Draft202012Validator(schema).validate(resource)
    return resource["apiVersion"]


def main(paths):
    schemas, wrong = read_definitions(), 0
    for path in paths:
        for resource in yaml.safe_load_all(pathlib.Path(path).read_text()):
            name = f"{path}: {resource['kind']} {resource['metadata']['name']}"
            try:
                print(f"{name}: valid ({check(resource, schemas)})")
            except jsonschema.ValidationError as error:
                print(f"{name}: {'.'.join(map(str, error.path))}: {error.message}")
                wrong += 1
            except kubernetes_validate.SchemaNotFoundError as error:
                print(f"{name}: {error.message}")
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
