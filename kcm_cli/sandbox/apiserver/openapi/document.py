"""The OpenAPI documents of a server, made at their first request and cached until the served resources change.

The first request decodes the definitions (1 MB of JSON), which takes 20 ms. The document of a group takes 10 ms, the
one of v2 100 ms, or 500 with 300 custom kinds, and that of 100 kinds with hundreds of fields each 200: they are
made in turns of the loop.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterator
from copy import copy
from typing import cast

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.runtime.turns import made_in_turns
from kcm_cli.sandbox.apiserver.crd.resources import CustomResources
from kcm_cli.sandbox.apiserver.data import read_data, read_definitions
from kcm_cli.sandbox.apiserver.openapi import protobuf, v2, v3
from kcm_cli.sandbox.apiserver.openapi.operations import MEDIA_TYPES, META, Operation, operations, tag
from kcm_cli.sandbox.apiserver.openapi.v2 import Encoded
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog, Served
from kcm_cli.sandbox.apiserver.schema import Target, target_of
from kcm_cli.sandbox.apiserver.schema.load import BuiltIn

VERSION = "1.36"
_PLAIN: dict[str, tuple[str, str, str]] = {
    "version": ("/version/", "getCodeVersion", "io.k8s.apimachinery.pkg.version.Info"),
    "openid/v1/jwks": ("/openid/v1/jwks/", "getServiceAccountIssuerOpenIDKeyset", ""),
    ".well-known/openid-configuration": (
        "/.well-known/openid-configuration/",
        "getServiceAccountIssuerOpenIDConfiguration",
        "",
    ),
    "api": ("/api/", "getCoreAPIVersions", META + "APIVersions"),
    "apis": ("/apis/", "getAPIVersions", META + "APIGroupList"),
}
_PLAIN_TYPES = {
    "version": ("application/json",),
    "openid/v1/jwks": ("application/jwk-set+json",),
    ".well-known/openid-configuration": ("application/json",),
}
_DESCRIBED = "io.k8s.api.core.v1.ConfigMap"
"""The kind whose apiVersion, kind and metadata custom schemas share, with their descriptions."""


class Document(msgspec.Struct, frozen=True):
    """The bytes of a document, and their ETag."""

    body: bytes
    etag: str


class OpenApi:
    """The documents of a server."""

    def __init__(self, catalog: Catalog, builtin: BuiltIn, custom: CustomResources | None = None) -> None:
        self._catalog = catalog
        self._builtin = builtin
        self._custom = custom
        self._made: dict[str, Document] = {}
        self._changes = 0
        """How often the served resources have changed."""
        self._making: dict[str, asyncio.Lock] = {}
        """Held while the document of a place is made."""
        self._digests: dict[Target, tuple[Served, str]] = {}
        """The digests of the schemas of custom kinds, with what was served then: it is replaced with its schema."""
        self._definitions: dict[str, Doc] = {}
        self._facts: dict[str, dict[str, Doc]] = {}
        self._named: dict[str, tuple[Served, bool]] | None = None
        """Custom kinds by the names of their definitions, and whether that is the one of their lists."""
        catalog.changed.append(self._forget)

    async def v2(self) -> Document:
        """The document of v2 as JSON."""
        return await self._in_turns("\0v2", self._make_v2)

    async def v2_protobuf(self) -> Document:
        """The document of v2 as protobuf."""
        return await self._in_turns("\0v2 protobuf", self._make_v2_protobuf)

    async def index(self) -> Document:
        """The URLs of all documents of v3."""
        return await self._in_turns("\0index", self._make_index)

    async def v3(self, place: str) -> Document | None:
        """The document of ``apis/apps/v1``, ``api/v1``, ``apis/apps`` or ``version``; None for unknown places."""
        if place not in self._places():
            return None
        return await self._in_turns(place, lambda: self._make_v3(place))

    def hash(self, place: str) -> str:
        """The hash in the URL of a document. Clients cache the document until it changes."""
        parts = [VERSION, place]
        for served in self._of(place):
            parts.append(served.info.gvr.plural)
            if served.info.custom:
                parts.append(self._digest(served))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest().upper()

    def _digest(self, served: Served) -> str:
        target = target_of(served.info)
        known = self._digests.get(target)
        if known is None or known[0] is not served:
            schema = codec.encode(self._custom_schema(served) or {})
            known = self._digests[target] = served, hashlib.sha256(schema).hexdigest()
        return known[1]

    def _forget(self) -> None:
        self._changes += 1
        self._made.clear()
        self._making.clear()
        self._named = None
        kept = (one for one in self._digests.items() if self._catalog.by_gvr(one[1][0].info.gvr) is one[1][0])
        self._digests = dict(kept)

    async def _in_turns(self, place: str, make: Callable[[], Awaitable[bytes]]) -> Document:
        """A document that takes several turns. Clients who ask for it meanwhile wait for the same one.

        It has what was served when it was begun. If that changes meanwhile, it is not kept.
        """
        async with self._making.setdefault(place, asyncio.Lock()):
            if (known := self._made.get(place)) is not None:
                return known
            changes = self._changes
            made = _document(await make())
            if changes == self._changes:
                self._made[place] = made
            return made

    # --- places ---------------------------------------------------------------------------------------

    def _places(self) -> list[str]:
        places = set(_PLAIN)
        for group in self._catalog.groups:
            if group.group:
                places.add(f"apis/{group.group}")
            places.update(f"apis/{group.group}/{v}" if group.group else f"api/{v}" for v in group.versions)
        return sorted(places)

    def _of(self, place: str) -> list[Served]:
        parts = place.split("/")
        if parts[0] == "api" and len(parts) == 2:
            return self._catalog.resources("", parts[1])
        return self._catalog.resources(parts[1], parts[2]) if len(parts) == 3 and parts[0] == "apis" else []

    async def _make_index(self) -> bytes:
        await made_in_turns(self._digest, [served for served in self._catalog if served.info.custom])
        paths = {
            place: {"serverRelativeURL": f"/openapi/v3/{place}?hash={self.hash(place)}"} for place in self._places()
        }
        return codec.encode({"paths": paths}) + b"\n"

    # --- documents ------------------------------------------------------------------------------------

    def _begun(self) -> "OpenApi":
        """The same with what is served now: later changes do not show in it."""
        self._load()
        begun = copy(self)
        begun._catalog = self._catalog.as_now()
        return begun

    async def _make_v3(self, place: str) -> bytes:
        begun = self._begun()
        parts = place.split("/")
        group, version = (parts[1], parts[2]) if len(parts) == 3 else ("", parts[-1])
        custom = begun._catalog.is_custom(group)

        def lookup(name: str) -> Doc | None:
            found = begun._definition(name)
            if found is None or name not in self._definitions:
                return found
            found = v3.detailed(found, self._facts.get(name, {}))
            return found if custom else v3.of_group(found, group, version)

        return codec.encode(await v3.document(VERSION, begun._operations(place), lookup)) + b"\n"

    async def _make_v2(self) -> bytes:
        return codec.encode(await self._v2(lambda message, doc: msgspec.Raw(codec.encode(doc)))) + b"\n"

    async def _make_v2_protobuf(self) -> bytes:
        return protobuf.encode(await self._v2(protobuf.message))

    async def _v2(self, encoded: Encoded) -> Doc:
        begun = self._begun()
        operations = (operation for place in begun._places() for operation in begun._operations(place))
        return await v2.document(VERSION, operations, begun._old_definitions(), encoded)

    def _old_definitions(self) -> Iterator[tuple[str, Doc]]:
        for name, definition in self._definitions.items():
            yield name, v3.detailed(definition, self._facts.get(name, {}), but="default")
        for served in self._catalog:
            if served.info.custom and (schema := self._custom_schema(served, old=True)) is not None:
                name = custom_name(served)
                yield name, schema
                yield f"{name}List", _custom_list(served)

    def _operations(self, place: str) -> Iterator[Operation]:
        if place in _PLAIN:
            path, id_, answer = _PLAIN[place]
            word = "core" if place == "api" else place.split("/")[0].strip(".")
            types = _PLAIN_TYPES.get(place, MEDIA_TYPES)
            yield Operation(
                path, "get", id_, "", f"read {place}", None, word, (), "", types, answer=answer, answer_types=types
            )
            return
        parts = place.split("/")
        group, version = (parts[1], parts[2]) if len(parts) == 3 else ("", parts[1])
        if parts[0] == "apis" and len(parts) == 2:
            word = tag(parts[1], "").rstrip("_")
            name = f"get{word[:1].upper()}{word[1:]}APIGroup"
            answer = META + "APIGroup"
            yield Operation(
                f"/{place}/", "get", name, "", "read the group", None, word, (), "", MEDIA_TYPES, answer=answer
            )
            return
        if self._catalog.is_custom(group):
            for served in self._of(place):
                yield from operations(served, self._name_of(served))
            return
        word = tag(group, version)
        joined = "".join(part[:1].upper() + part[1:] for part in word.split("_"))
        yield Operation(
            f"/{place}/", "get", f"get{joined}APIResources", "", "read the resources", None, word,
            body_types=MEDIA_TYPES, answer=META + "APIResourceList",
        )  # fmt: skip
        for served in self._of(place):
            yield from operations(served, self._name_of(served))

    def _name_of(self, served: Served) -> str:
        gvr = served.info.gvr
        if served.info.custom:
            return custom_name(served)
        return self._builtin.definition(gvr.group, gvr.version, served.info.kind) or ""

    # --- definitions ----------------------------------------------------------------------------------

    def _load(self) -> None:
        if not self._definitions:
            self._facts = _facts()
            declared = self._builtin.published
            lists = {
                f"{name}List": _custom_list(one) for one in self._catalog if (name := self._name_of(one)) in declared
            }
            self._definitions = read_definitions() | declared | lists

    def _definition(self, name: str) -> Doc | None:
        self._load()
        found = self._definitions.get(name)
        if found is not None:
            return found
        if self._named is None:
            custom = [(custom_name(served), served) for served in self._catalog if served.info.custom]
            self._named = {f"{name}List": (served, True) for name, served in custom}
            self._named |= {name: (served, False) for name, served in custom}
        served, is_list = self._named.get(name, (None, False))
        if served is None:
            return None
        return _custom_list(served) if is_list else self._custom_schema(served)

    def _custom_schema(self, served: Served, *, old: bool = False) -> Doc | None:
        schema = self._custom.openapi(served, old=old) if self._custom is not None else None
        properties = schema.get("properties") if schema is not None else None
        if isinstance(properties, dict):
            self._load()
            known = cast("Doc", self._definitions[_DESCRIBED]["properties"])
            own = {name: known[name] for name in ("apiVersion", "kind", "metadata")}
            schema = {**(schema or {}), "properties": {**properties, **own}}
        return schema if schema is None else {**schema, **_selectable(served)}


def _document(body: bytes) -> Document:
    return Document(body, f'"{hashlib.sha256(body).hexdigest().upper()}"')


def _facts() -> dict[str, dict[str, Doc]]:
    """What else is known of the fields of definitions, by the names of both."""
    facts = codec.decode(read_data("openapi"), dict[str, dict[str, Doc]])
    for name, texts in codec.decode(read_data("enums"), dict[str, dict[str, str]]).items():
        fields = facts.setdefault(name, {})
        for field, text in texts.items():
            fields[field] = {**fields.get(field, {}), v3.EXPLAINED: text}
    return facts


def custom_name(served: Served) -> str:
    """``com.example.stable.v1.CronTab`` for CronTab of ``stable.example.com/v1``."""
    gvr = served.info.gvr
    return ".".join([*reversed(gvr.group.split(".")), gvr.version, served.info.kind])


def _custom_list(served: Served) -> Doc:
    gvr = served.info.gvr
    return {
        "description": f"{served.list_kind} is a list of {served.info.kind}",
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string"},
            "items": {"type": "array", "items": {"$ref": f"#/definitions/{custom_name(served)}"}},
            "kind": {"type": "string"},
            "metadata": {"$ref": f"#/definitions/{META}ListMeta"},
        },
        "x-kubernetes-group-version-kind": [
            {"group": gvr.group, "version": gvr.version, "kind": served.list_kind or f"{served.info.kind}List"}
        ],
        **_selectable(served),
    }


def _selectable(served: Served) -> Doc:
    """The fields that a definition lets clients select by."""
    fields = [{"fieldPath": path} for path in served.selectable.fields] if served.selectable is not None else []
    return {"x-kubernetes-selectable-fields": fields} if fields else {}
