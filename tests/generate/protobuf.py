"""Makes api/protobuf/messages.json.gz: the numbers that the fields of each kind have in the protobuf form.

    python -m tests.generate.protobuf STAGING

STAGING is the folder ``staging/src/k8s.io`` of Kubernetes' source in the version that is served: its packages have
their messages in ``generated.proto``. Which of the messages' fields are embedded in JSON is read from the installed
package kubernetes-validate; kinds that the server does not serve are left out.
"""

import json
import re
import sys
from pathlib import Path

from kcm_cli.api.protobuf.messages import DATA, message_of
from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.kinds import KINDS
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from tests.generate import data

_PACKAGE = re.compile(r"^package ([\w.]+);", re.M)
_MESSAGE = re.compile(r"^message (\w+) \{\n(.*?)^\}", re.M | re.S)
_FIELD = re.compile(r"^  (optional|repeated|map<string, ([\w.]+)>) ?([\w.]*) (\w+) = (\d+);", re.M)
_SCALARS = {"int32": "int", "int64": "int", "uint32": "int"} | {
    name: name for name in ("bool", "double", "string", "bytes")
}
_PREFIXES = (
    "k8s.io.apimachinery.pkg.apis.",
    "k8s.io.apimachinery.pkg.api.",
    "k8s.io.apimachinery.pkg.",
    "k8s.io.kube_aggregator.pkg.apis.",
    "k8s.io.apiextensions_apiserver.pkg.apis.",
    "k8s.io.api.",
)
_ALSO = (
    *("meta.v1.DeleteOptions", "meta.v1.ListMeta", "meta.v1.PartialObjectMetadata", "meta.v1.Status"),
    *("meta.v1.APIGroup", "meta.v1.APIGroupList", "meta.v1.APIResourceList", "meta.v1.APIVersions"),
    "apidiscovery.v2.APIGroupDiscoveryList",
)
"""What is sent without being a resource."""

Field = tuple[int, str, str]
Messages = dict[str, list[Field]]


def main(staging: Path) -> None:
    """Write messages.json.gz."""
    messages: Messages = {}
    for path in sorted(staging.glob("**/generated.proto")):
        _read_file(path.read_text(), messages)
    _inline(messages)
    short = {_short(name): sorted((n, f, _short(t)) for n, f, t in found) for name, found in messages.items()}
    lines = [f"{json.dumps(name)}:{codec.encode(short[name]).decode()}" for name in sorted(_needed(short))]
    data.write_to(DATA, "{\n" + ",\n".join(lines) + "\n}\n")


def _read_file(text: str, messages: Messages) -> None:
    package = _PACKAGE.search(text)
    assert package is not None
    for name, body in _MESSAGE.findall(text):
        messages[f"{package[1]}.{name}"] = [_field(package[1], *parts) for parts in _FIELD.findall(body)]


def _field(package: str, label: str, values: str, type_: str, name: str, number: str) -> Field:
    form = "{}" if values else "[]" if label == "repeated" else ""
    return int(number), name, form + _absolute(package, values or type_)


def _absolute(package: str, type_: str) -> str:
    if type_ in _SCALARS:
        return _SCALARS[type_]
    return type_.removeprefix(".") if "." in type_ else f"{package}.{type_}"


def _inline(messages: Messages) -> None:
    """Names as JSON has them; a field that it does not have holds what is embedded: its name becomes empty."""
    definitions = data.definitions()
    for name, found in messages.items():
        known = definitions.get(name.replace("k8s.io.", "io.k8s.", 1).replace("_", "-"), {}).get("properties")
        if known is None:
            continue
        for place, (number, field, type_) in enumerate(found):
            if field not in known:
                same = [key for key in known if _plain(key) == field.lower()]
                found[place] = number, *(same or ([""] if type_ in messages else [field])), type_


def _plain(key: str) -> str:
    """``x-kubernetes-list-type`` and ``$ref`` as they are written in the messages, in small letters."""
    return key.replace("-", "").removeprefix("$").lower()


def _needed(messages: Messages) -> set[str]:
    wanted = set(_ALSO)
    for served in Catalog(KINDS):
        info = served.info
        wanted.add(message_of(info.api_version, info.kind))
        for sub in served.subresources.values():
            group, version = sub.group or info.gvr.group, sub.version or info.gvr.version
            wanted.add(message_of(f"{group}/{version}", sub.kind))
    needed: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in messages and name not in needed:
            needed.add(name)
            wanted |= {type_.removeprefix("[]").removeprefix("{}") for _, _, type_ in messages[name]}
    return needed


def _short(type_: str) -> str:
    form = type_[:2] if type_[:2] in ("[]", "{}") else ""
    name = type_.removeprefix(form)
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return form + name


if __name__ == "__main__":
    main(Path(sys.argv[1]))
