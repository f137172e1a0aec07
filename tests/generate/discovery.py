"""Makes discovery.json.gz: what the server serves, from a recorded list of the facts.

    python -m tests.generate.discovery FACTS

FACTS is the list of groups and resources of a v1.36 server (group, version, name, kind, verbs, short names, ...).
The result is compact, so that it is read at every start within a millisecond.
"""

import sys
from pathlib import Path

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from tests.generate import data

ALL_VERBS = ["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"]


def _subresource(sub: Doc) -> Doc:
    return {key: sub[key] for key in ("name", "kind", "group", "version", "verbs") if sub.get(key)}


def _resource(resource: Doc) -> Doc:
    compact: Doc = {
        "gv": [resource["group"], resource["version"]],
        "name": resource["name"],
        "singular": resource["singularName"],
        "kind": resource["kind"],
        "namespaced": resource["namespaced"],
    }
    if resource["verbs"] != ALL_VERBS:
        compact["verbs"] = resource["verbs"]
    for short, key in (("short", "shortNames"), ("categories", "categories"), ("hash", "storageVersionHash")):
        if resource.get(key):
            compact[short] = resource[key]
    subresources = resource["subresources"]
    assert isinstance(subresources, list)
    if subresources:
        compact["subresources"] = [_subresource(sub) for sub in subresources]
    return compact


def main(facts: Path) -> None:
    """Write discovery.json.gz."""
    document = codec.decode_doc(facts.read_bytes())
    resources = document["resources"]
    assert isinstance(resources, list)
    lines = [codec.encode(_resource(resource)).decode() for resource in resources]
    groups = codec.encode(document["groups"]).decode()
    text = '{"groups":' + groups + ',\n"resources":[\n' + ",\n".join(lines) + "\n]}\n"
    data.write("discovery", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
