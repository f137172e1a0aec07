"""Makes go_names.json.gz: the Go names that texts of decoding errors show and that published schemas do not state.

    python -m tests.generate.go_names SOURCE

SOURCE is a Kubernetes source tree of v1.36. ``fields``: type → field → the named type of a scalar, a list or a map
(``v1.Protocol``, ``[]v1.Capability``). ``embedded``: type → field → the embedded structs on the way to it.
"""

import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.data import read_data
from kcm_cli.sandbox.apiserver.schema.load import short_name
from tests.generate import data

_ROOTS = (
    "staging/src/k8s.io/api",
    "staging/src/k8s.io/apimachinery/pkg/apis",
    "staging/src/k8s.io/apiextensions-apiserver/pkg/apis",
    "staging/src/k8s.io/kube-aggregator/pkg/apis",
)
_STRUCT = re.compile(r"^type (\w+) struct \{\n(.*?)^\}", re.M | re.S)
_NAMED = re.compile(r"^type (\w+) (?!struct|interface|=)(\S.*)$", re.M)
_IMPORT = re.compile(r'^\s*(\w+ )?"(k8s\.io/[^"]+)"$', re.M)
_FIELD = re.compile(r'^\s*(?:(\w+)\s+)?([*\[\]\w.]+)\s+`[^`]*json:"([^",]*)([^"]*)"', re.M)
_BASIC = frozenset({"string", "bool", "byte", "int", "int32", "int64", "float64"})


@dataclass
class _Package:
    """One package of types: ``core.v1``."""

    name: str
    named: dict[str, str] = field(default_factory=dict)
    structs: dict[str, str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)


def _packages(source: Path) -> dict[str, _Package]:
    found: dict[str, _Package] = {}
    for root in _ROOTS:
        for path in sorted((source / root).glob("*/v*/*types*.go")):
            if path.name.endswith("_test.go") or path.name.startswith(("zz_", "types_swagger")):
                continue
            name = ".".join(path.parent.relative_to(source / root).parts)
            package = found.setdefault(name, _Package(name))
            text = path.read_text()
            package.structs.update(_STRUCT.findall(text))
            package.named.update(_NAMED.findall(text))
            for alias, target in _IMPORT.findall(text):
                parts = target.split("/")
                package.imports[alias.strip() or parts[-1]] = ".".join(parts[-2:])
    return found


def _home(package: _Package, go: str, packages: dict[str, _Package]) -> tuple[_Package | None, str]:
    """The package that a name belongs to, and its bare name."""
    prefix, _, bare = go.rpartition(".")
    return (packages.get(package.imports.get(prefix, "")), bare) if prefix else (package, bare)


def _shown(package: _Package, go: str, packages: dict[str, _Package]) -> str:
    """The named type as Go prints it; empty for what the schema tells as well."""
    go = go.removeprefix("*")
    if go.startswith("[]"):
        item = _shown(package, go[2:], packages)
        return f"[]{item}" if item else ""
    if go == "types.UID":
        return go
    home, bare = _home(package, go, packages)
    if go in _BASIC or home is None or bare not in home.named:
        return ""
    return f"{home.name.split('.')[-1]}.{bare}"


def _embedded(package: _Package, body: str, packages: dict[str, _Package], way: tuple[str, ...]) -> dict[str, str]:
    """Field → the chain of embedded structs that leads to it."""
    found: dict[str, str] = {}
    for name, go, key, _ in _FIELD.findall(body):
        if key and way:
            found[key] = ".".join(way)
        elif not key:
            home, bare = _home(package, go.removeprefix("*"), packages)
            if home is not None and bare in home.structs:
                found |= _embedded(home, home.structs[bare], packages, (*way, name or bare))
    return found


def _fields(package: _Package, body: str, packages: dict[str, _Package]) -> dict[str, str]:
    found: dict[str, str] = {}
    for _, go, key, _ in _FIELD.findall(body):
        if key:
            shown = _shown(package, go, packages)
            if shown:
                found[key] = shown
            continue
        home, bare = _home(package, go.removeprefix("*"), packages)
        if home is not None and bare in home.structs:
            found |= _fields(home, home.structs[bare], packages)
    return found


def main(source: Path) -> None:
    """Write go_names.json.gz."""
    packages, fields, embedded = _packages(source), {}, {}
    known = {short_name(name) for name in codec.decode_doc(read_data("types"))["types"]}  # type: ignore[attr-defined]
    for package in packages.values():
        for name, body in package.structs.items():
            full = f"{package.name}.{name}"
            if full in known:
                fields[full] = _fields(package, body, packages)
                embedded[full] = _embedded(package, body, packages, ())
    document = {
        key: {name: dict(sorted(values.items())) for name, values in sorted(table.items()) if values}
        for key, table in (("embedded", embedded), ("fields", fields))
    }
    data.write("go_names", codec.encode(document).decode() + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
