"""Applies manifests (YAML files, folders of them, documents) to a sandbox.

They are applied server-side, in order. Objects of a kind whose CustomResourceDefinition was just created wait until it
is served.
"""

import codecs
import glob
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import APPLY
from kcm_cli.rest.client import Client
from kcm_cli.rest.discovery import discover
from kcm_cli.rest.errors import ApiError
from kcm_cli.rest.served_resources import Discovery, ServedResource
from kcm_cli.rest.transport import Request
from kcm_cli.sandbox.apiserver.schema import yaml_body
from kcm_cli.sandbox.apiserver.schema.gojson import without_lone_surrogates

Manifest = str | os.PathLike[str] | Mapping[str, Any]
"""The path of a file or folder, or one object."""
MANAGER = "kcm-sandbox"
_DEFINITION = "CustomResourceDefinition"
_SERVED_S, _POLL_S = 5.0, 0.05
_ENDINGS = (".yaml", ".yml", ".json")
_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_KUSTOMIZE = ("kustomization.yaml", "kustomization.yml", "Kustomization")
_space = re.compile(r"\s*")


class ManifestError(ValueError):
    """A manifest cannot be applied; the text says which one and why."""


async def apply(client: Client, clock: Clock, manifests: tuple[Manifest, ...], namespace: str = "") -> None:
    """Apply manifests. ``namespace``: the default for objects without one. Raises ManifestError."""
    __tracebackhide__ = True  # in the report of a test that fails
    known, until = Discovery(), float("-inf")
    for where, doc in [found for manifest in manifests for found in documents(manifest)]:
        version, kind = _text(doc, "apiVersion", where), _text(doc, "kind", where)
        while (resource := _served(known, version, kind)) is None:
            known = await discover(client)
            if _served(known, version, kind) is None:
                if clock.monotonic() > until:
                    problem = f'kind "{kind}" of version "{version}" is not served'
                    raise ManifestError(f"{where}: {problem} ({_hint(known, kind)})")
                await clock.sleep(_POLL_S)
        await _apply(client, resource, doc, namespace, where)
        if kind == _DEFINITION:
            until = clock.monotonic() + _SERVED_S


def _text(doc: Doc, field: str, where: str) -> str:
    """A field of an object that must not be empty. Raises ManifestError."""
    __tracebackhide__ = True
    value = doc.get(field)
    if not isinstance(value, str) or not value:
        raise ManifestError(f"{where}: {field} is missing" if not value else f"{where}: {field} is no string")
    return value


def _served(known: Discovery, version: str, kind: str) -> ServedResource | None:
    group, slash, name = version.rpartition("/")
    return known.find_kind(group if slash else "", kind, name)


def _hint(known: Discovery, kind: str) -> str:
    """What was meant by a kind that is not served."""
    if versions := [one.gvr.group_version for one in known.preferred() if one.kind == kind]:
        return f"this kind is in {' and in '.join(versions)}"
    near = known.near(kind)
    return f"did you mean {near}?" if near else "apply its CustomResourceDefinition first"


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
    if "\n" in str(manifest):
        raise ManifestError(
            "a manifest is the path of a file or folder, or an object, not YAML: yaml.safe_load reads that"
        )
    for path in _files(Path(manifest)):
        if path.name in _KUSTOMIZE:
            way = f"apply what `kubectl kustomize {path.parent}` prints, or the other files by their names"
            raise ManifestError(f"{path} is for kustomize: {way}")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise ManifestError(f"cannot read {path}: {error.strerror}") from None
        yield from parsed(data, str(path))


def parsed(data: bytes, where: str) -> Iterator[tuple[str, Doc]]:
    """Each object in YAML documents, or in JSON objects one after another, and its location. Raises ManifestError."""
    __tracebackhide__ = True
    number = 0
    try:
        text = _decoded(data)
        for number, doc in enumerate(_json_objects(text) or yaml_body.load_all(text.encode()), 1):
            if doc is not None:
                yield from _objects(f"{where}, document {number}", doc)
    except yaml_body.YamlError as error:
        raise ManifestError(f"{where}, document {number + 1}: {error}") from None
    except RecursionError:
        raise ManifestError(f"{where} is nested too deep") from None


def _decoded(data: bytes) -> str:
    """The text as kubectl reads it: UTF-8, or what a byte order mark says, as of files that PowerShell wrote. What is
    no character becomes U+FFFD.

    upstream: staging/src/k8s.io/cli-runtime/pkg/resource/visitor.go#FileVisitor
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return data[len(mark) :].decode(encoding, "replace")
    return data.decode("utf-8", "replace")


def _json_objects(text: str) -> list[object]:
    """The JSON objects in a text that has nothing else; else an empty list. Numbers beyond all floats are text, as in
    YAML.
    """
    found: list[object] = []
    decoder, at = json.JSONDecoder(parse_constant=str, parse_float=_float), 0
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


def _float(text: str) -> float | str:
    value = float(text)
    return value if math.isfinite(value) else text


def _files(path: Path) -> list[Path]:
    """The file, those of the folder without what is below it, or those that a pattern such as ``app/*.yaml`` names."""
    named = [] if os.path.exists(path) else sorted(map(Path, glob.glob(os.fspath(path))))
    return [file for one in named or [path] for file in _in(one)]


def _in(path: Path) -> list[Path]:
    if not os.path.isdir(path):
        return [path]
    try:
        return sorted(one for one in path.iterdir() if one.suffix in _ENDINGS and not one.is_dir())
    except OSError as error:
        raise ManifestError(f"cannot read {path}: {error.strerror}") from None


def _objects(where: str, doc: object) -> Iterator[tuple[str, Doc]]:
    if not isinstance(doc, Mapping):
        raise ManifestError(f"{where}: it is no object")
    kind, items = str(doc.get("kind", "")), doc.get("items", ())
    if kind.endswith("List") and items is None:
        raise ManifestError(f"{where}: the items of this {kind} are null, which kubectl refuses: an empty list is []")
    if kind and isinstance(items, list):
        for item in items:
            yield from _objects(where, _typed(item, doc, kind.removesuffix("List")))
    else:
        yield where, dict(doc)


def _typed(item: object, whole: Mapping[str, Any], kind: str) -> object:
    """An item with the type that its list implies: API servers leave it out in a PodList."""
    if isinstance(item, Mapping) and kind and not (item.get("kind") or item.get("apiVersion")):
        return {**item, "apiVersion": whole.get("apiVersion"), "kind": kind}
    return item
