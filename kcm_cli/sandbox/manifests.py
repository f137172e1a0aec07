"""Applies manifests (YAML files, folders of them, documents) to a sandbox.

They are applied server-side, in order. Objects of a kind whose CustomResourceDefinition was just created wait until it
is served.
"""

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.yaml_errors import described
from kcm_cli.planning.actions import APPLY
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.served import Discovery, ServedResource
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.schema.gojson import without_lone_surrogates

Manifest = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a file or folder, or one object."""
MANAGER = "kcm-sandbox"
_DEFINITION = "CustomResourceDefinition"
_SERVED_S, _POLL_S = 5.0, 0.05
_ENDINGS = (".yaml", ".yml", ".json")
_FREE_NODES, _MOST_GROWTH = 100_000, 10
"""How many nodes aliases may make of any document, and of one with many nodes, how many of each."""
_space = re.compile(r"\s*")
_MERGE = "tag:yaml.org,2002:merge"


class _Loader(yaml.SafeLoader):
    """A loader that refuses escapes of no character, and bounds the keys that merges (``<<``) copy: each level of them
    may multiply their number.
    """

    merged = 0

    def scan_flow_scalar_non_spaces(self, double: bool, start_mark: yaml.Mark) -> list[str]:
        try:
            chunks: list[str] = super().scan_flow_scalar_non_spaces(double, start_mark)
            "".join(chunks).encode()
        except ValueError:  # a surrogate, or beyond the last character
            problem = "found invalid Unicode character escape code"
            raise yaml.scanner.ScannerError(None, None, problem, self.get_mark()) from None
        return chunks

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        for key, value in node.value:
            if key.tag == _MERGE:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    self._count(part)
        super().flatten_mapping(node)

    def _count(self, part: yaml.Node) -> None:
        if not isinstance(part, yaml.MappingNode):
            return  # which the parser refuses
        self.flatten_mapping(part)
        self.merged += len(part.value)
        if self.merged > _FREE_NODES:
            raise yaml.constructor.ConstructorError(None, None, "excessive merging", part.start_mark)


class ManifestError(ValueError):
    """A manifest cannot be applied; the text says which one and why."""


async def apply(client: Client, clock: Clock, manifests: tuple[Manifest, ...], namespace: str = "") -> None:
    """Apply manifests. ``namespace``: the default for objects without one. Raises ManifestError."""
    __tracebackhide__ = True  # in the report of a test that fails
    known, until = Discovery(), float("-inf")
    for where, doc in [found for manifest in manifests for found in documents(manifest)]:
        version, kind = str(doc.get("apiVersion", "")), str(doc.get("kind", ""))
        while (resource := _served(known, version, kind)) is None:
            known = await discover(client)
            if _served(known, version, kind) is None:
                if clock.monotonic() > until:
                    raise ManifestError(f'{where}: kind "{kind}" of version "{version}" is not served')
                await clock.sleep(_POLL_S)
        await _apply(client, resource, doc, namespace, where)
        if kind == _DEFINITION:
            until = clock.monotonic() + _SERVED_S


def _served(known: Discovery, version: str, kind: str) -> ServedResource | None:
    group, slash, name = version.rpartition("/")
    return known.find_kind(group if slash else "", kind, name)


async def _apply(client: Client, resource: ServedResource, doc: Doc, namespace: str, where: str) -> None:
    __tracebackhide__ = True
    metadata: Any = doc.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if not isinstance(name, str) or not name:
        raise ManifestError(f"{where}: metadata.name is missing")
    space = (str(metadata.get("namespace") or namespace) or "default") if resource.namespaced else ""
    path = resource.gvr.path(space, name)
    query = (("fieldManager", MANAGER), ("force", "true"))
    try:
        await client.call(Request("PATCH", path, query, {"content-type": APPLY}, codec.encode(doc)))
    except ApiError as error:
        raise ManifestError(f"{where}: {error}") from None


def documents(manifest: Manifest) -> Iterator[tuple[str, Doc]]:
    """Each object of a manifest and its location. Raises ManifestError."""
    __tracebackhide__ = True
    if isinstance(manifest, Mapping):
        yield from _objects(f"{manifest.get('kind', 'a document')}", manifest)
        return
    for path in _files(Path(manifest)):
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ManifestError(f"cannot read {path}: {error.strerror}") from None
        yield from parsed(data, str(path))


def parsed(data: bytes, where: str) -> Iterator[tuple[str, Doc]]:
    """Each object in YAML documents, or in JSON objects one after another, and its location. Raises ManifestError."""
    __tracebackhide__ = True
    try:
        text = data.decode()
        found = _json_objects(text) or list(yaml.load_all(text, Loader=_Loader))
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise ManifestError(f"{where} is not YAML: {described(error)}") from None
    except RecursionError:
        raise ManifestError(f"{where} is nested too deep") from None
    for number, doc in enumerate(found, 1):
        if doc is not None:
            _check_aliases(f"{where}, document {number}", doc)
            yield from _objects(f"{where}, document {number}", doc)


def _json_objects(text: str) -> list[object]:
    """The JSON objects in a text that has nothing else; else an empty list."""
    found: list[object] = []
    decoder, at = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite), 0
    text = without_lone_surrogates(text)
    while (start := _space.match(text, at).end()) < len(text):  # type: ignore[union-attr]  # it matches everywhere
        if text[start] != "{":
            return []
        try:
            document, at = decoder.raw_decode(text, start)
        except ValueError:
            return []
        found.append(document)
    return found


def _no_number(name: str) -> object:
    raise ValueError(name)


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _check_aliases(where: str, doc: object) -> None:
    """Refuse a document that aliases make many times as big as it is written, or that contains itself."""
    sizes: dict[int, int | None] = {}
    written = 0

    def size(node: object) -> int:
        nonlocal written
        if not isinstance(node, dict | list):
            written += 1
            return 1
        if id(node) in sizes:
            known = sizes[id(node)]
            if known is None:
                raise ManifestError(f"{where}: an alias is part of what it stands for")
            return known
        sizes[id(node)] = None
        written += 1
        found = 1 + sum(map(size, node.values() if isinstance(node, dict) else node))
        sizes[id(node)] = found
        return found

    if size(doc) > _FREE_NODES + _MOST_GROWTH * written:
        raise ManifestError(f"{where}: the document contains excessive aliasing")


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    try:
        return sorted(one for one in path.iterdir() if one.suffix in _ENDINGS)
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror}") from None


def _objects(where: str, doc: object) -> Iterator[tuple[str, Doc]]:
    if not isinstance(doc, Mapping):
        raise ManifestError(f"{where}: it is no object")
    items = doc.get("items")
    if str(doc.get("kind", "")).endswith("List") and isinstance(items, list):
        for item in items:
            yield from _objects(where, item)
    else:
        yield where, dict(doc)
