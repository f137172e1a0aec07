"""Content negotiation: the media types and transforms of requests and responses.

upstream: apiserver pkg/endpoints/handlers/negotiation/negotiate.go (v1.36)
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kcm_cli.api.protobuf.decoding import UnknownForm, to_json
from kcm_cli.component.zpages import MAX_ACCEPT
from kcm_cli.machinery.booleans import parse_bool
from kcm_cli.machinery.errors import FormatError
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.errors import NotAcceptable, bad_request, no_representation, unsupported_media_type
from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.registry.media import (
    PROTOBUF,
    Media,
    PartialJson,
    PlainJson,
    ProtobufMedia,
    ShapedJson,
    YamlMedia,
    as_protobuf,
    as_yaml,
)
from kcm_cli.sandbox.apiserver.types import ApiError, Tree

JSON, YAML = "application/json", "application/yaml"
BUILTIN_TYPES = f"{JSON}, {YAML}, {PROTOBUF}"
_STREAM_TYPES = f"{JSON};stream=watch, {PROTOBUF};stream=watch"
CUSTOM_TYPES = f"{JSON}, {YAML}"
Convert = Callable[[Served, Tree], Tree]

PARTIAL = frozenset(["PartialObjectMetadata", "PartialObjectMetadataList"])
_META_VERSIONS = ("v1", "v1beta1")
_NO_TRANSFORMS: frozenset[str] = frozenset()
TRANSFORMS = PARTIAL | {"Table"}
_INTERACTIVE = ("curl", "Wget", "Mozilla/5.0")


class Clause(msgspec.Struct, frozen=True):
    """A media range of an Accept header, with its parameters except q."""

    media: str
    params: tuple[tuple[str, str], ...] = ()

    def param(self, name: str) -> str:
        return dict(self.params).get(name, "")

    def accepts(self, media: str) -> bool:
        """Whether a media type matches, by name or wildcard."""
        return self.media in (media, "*/*") or self.media == media.partition("/")[0] + "/*"


def clauses(header: str) -> tuple[Clause, ...]:
    """The media ranges, best first. A header is read up to ``MAX_ACCEPT``."""
    return _clauses(header[:MAX_ACCEPT])


@lru_cache(maxsize=512)
def _clauses(header: str) -> tuple[Clause, ...]:
    found: list[tuple[float, int, Clause]] = []
    for part in header.split(","):
        media, *texts = [piece.strip() for piece in part.split(";")]
        pairs = [(key.strip(), value.strip()) for key, _, value in (text.partition("=") for text in texts)]
        quality = _quality(dict(pairs).get("q", "1"))
        params = tuple(pair for pair in pairs if pair[0] != "q")
        found.append((-quality, media.count("*"), Clause("*/*" if media == "*" else media, params)))
    return tuple(clause for _, _, clause in sorted(found, key=lambda entry: entry[:2]))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


def wants_indented(headers: Mapping[str, str], asked: str) -> bool:
    """Whether to indent JSON: by the query parameter ``pretty``, otherwise by the client."""
    if asked:
        return bool(parse_bool(asked))
    if headers.get("user-agent", "").startswith(_INTERACTIVE):
        return True
    accept = headers.get("accept", "")
    return "pretty" in accept and any(one.accepts(JSON) and one.param("pretty") == "1" for one in clauses(accept))


class Wanted(msgspec.Struct, frozen=True):
    """A negotiated form. transform: Table, PartialObjectMetadata(List) or nothing; version: its version in meta.k8s.io.

    bare: JSON for a client that prefers protobuf of the same form, whose list items have no kind and apiVersion.
    """

    yaml: bool = False
    transform: str = ""
    version: str = ""
    protobuf: bool = False
    bare: bool = False


_TOKEN = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_PARAMETER = re.compile(rf'\s*;\s*({_TOKEN})\s*=\s*({_TOKEN}|"(?:[^"\\\r\n]|\\[^\r\n])*")')


def _media_type(header: str) -> str:
    """The media type of a Content-Type header; empty if its parameters cannot be read.

    upstream: mime/mediatype.go#ParseMediaType
    """
    media, _, _ = header.partition(";")
    position, found = len(media), dict[str, str]()
    while match := _PARAMETER.match(header, position):
        name, value = match[1].lower(), match[2]
        if found.setdefault(name, value) != value:
            return ""
        position = match.end()
    return media.strip().lower() if header[position:].strip() in ("", ";") else ""


def readable(request: Request, *, custom: bool) -> Request:
    """The request with a body in JSON or YAML, converted from protobuf. Raises ApiError 400, 415."""
    header = request.headers.get("content-type", "")
    if not header or header == JSON:
        return request
    media = _media_type(header)
    if media in (JSON, YAML):
        return request
    if media != PROTOBUF or custom:
        raise unsupported_media_type(CUSTOM_TYPES if custom else BUILTIN_TYPES)
    try:
        body = to_json(request.body)
    except UnknownForm as error:
        raise unsupported_media_type(CUSTOM_TYPES, str(error)) from error
    except FormatError as error:
        raise bad_request(str(error)) from error
    return replace(request, headers={**request.headers, "content-type": JSON}, body=body)


def check_route(header: str, *, listing: bool, text: bool = False) -> None:
    """Check an Accept header as the router of built-in resources does. text: for a log. Raises ApiError 406."""
    if text:
        check_produced(header, f"text/plain, {BUILTIN_TYPES}")
        return
    check_produced(header, f"{BUILTIN_TYPES}, {_STREAM_TYPES}" if listing else BUILTIN_TYPES)


def negotiate(header: str, *, transforms: frozenset[str] = TRANSFORMS) -> Wanted | None:
    """The form of the response, or None if no accepted one can be produced.

    A client that accepts both JSON and protobuf gets JSON, which is what is stored.
    """
    return _negotiate(header[:MAX_ACCEPT], transforms)


@lru_cache(maxsize=512)
def _negotiate(header: str, transforms: frozenset[str]) -> Wanted | None:
    if not header:
        return Wanted()
    packed: Wanted | None = None
    for clause in clauses(header):
        kind, group, version = clause.param("as"), clause.param("g"), clause.param("v")
        known = kind in transforms and group == "meta.k8s.io" and version in _META_VERSIONS
        if (kind or group or version) and not known:
            continue
        stream = clause.param("stream")
        if clause.media == PROTOBUF and kind != "Table" and stream in ("", "watch"):
            packed = packed or Wanted(False, kind, version, protobuf=True)
        if clause.accepts(JSON) and stream in ("", "watch"):
            return Wanted(False, kind, version, bare=_wants_packed(packed, kind, version))
        if clause.accepts(YAML) and not stream:
            return Wanted(True, kind, version)
    return packed


def _wants_packed(packed: Wanted | None, kind: str, version: str) -> bool:
    return packed is not None and kind in PARTIAL and (packed.transform, packed.version) == (kind, version)


def for_status(header: str) -> Wanted | None:
    """The form of an error's Status, without transforms; None if no accepted one can be produced."""
    return negotiate(header, transforms=_NO_TRANSFORMS)


def shaped(response: Response, form: Wanted) -> Response:
    """A JSON response as protobuf or YAML, if negotiated. Does not transform."""
    if form.protobuf:
        return as_protobuf(response)
    return as_yaml(response) if form.yaml else response


def wanted(
    header: str, *, custom: bool = False, stream: bool = False, transforms: frozenset[str] = TRANSFORMS
) -> Wanted:
    """``negotiate`` for a resource. Raises ApiError 406."""
    found = negotiate(header, transforms=transforms)
    if found is None or (found.protobuf and custom and found.transform not in PARTIAL):
        raise refused()  # custom objects have no protobuf form, only their metadata
    if stream and found.yaml:
        raise NotAcceptable(_STREAM_TYPES)
    return found


def check_produced(header: str, produced: str) -> None:
    """The router's check: names of media types without parameters; ``type/*`` is not known. Raises ApiError 406.

    upstream: go-restful v3 route.go#matchesAccept
    """
    names = [part.partition(";")[0].strip() for part in header[:MAX_ACCEPT].split(",")] if header else ["*/*"]
    known = produced.split(", ")
    if not any(name == "*/*" or name in known for name in names):
        raise no_representation(produced)


def refused() -> ApiError:
    """406: no accepted form can be produced."""
    return NotAcceptable(BUILTIN_TYPES)


def media_for(served: Served, form: Wanted, convert: Convert) -> Media:
    """The form for a resource, except tables. convert: converts from the stored form to the resource's."""
    inner: Media
    if form.transform in PARTIAL:
        inner = PartialJson(served, form.version, of_list=form.transform.endswith("List"), bare=form.bare)
    elif served.converts:
        names = (served.list_kind, served.info.api_version)
        inner = ShapedJson(served, lambda doc: convert(served, doc), names, typed=served.info.custom)
    else:
        inner = PlainJson(served)
    if form.protobuf:
        return ProtobufMedia(inner)
    return YamlMedia(inner) if form.yaml else inner


__all__ = [
    "PROTOBUF",
    "BUILTIN_TYPES",
    "CUSTOM_TYPES",
    "Wanted",
    "as_protobuf",
    "clauses",
    "media_for",
    "negotiate",
    "readable",
    "refused",
    "shaped",
    "wanted",
]
