"""Decodes request bodies: from bytes to a normalised document, or to the error of a kube-apiserver.

upstream: apiserver pkg/endpoints/handlers/{create,update,rest}.go, apimachinery pkg/runtime/serializer/json
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol, cast

import msgspec

from kcm_cli.api.resource import group_version
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.schema import gojson, restore, scheme, strict, yaml_body
from kcm_cli.sandbox.apiserver.schema.decode import Irregular, Normalizers
from kcm_cli.sandbox.apiserver.schema.load import BuiltIn
from kcm_cli.sandbox.apiserver.schema.model import Node
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo

STRICT, WARN, IGNORE = "Strict", "Warn", "Ignore"
META_STRUCT = 'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }'
_SUMMARY = 30


@dataclass(frozen=True, slots=True)
class Target:
    """The kind that a path accepts: the resource's, or a subresource's. ``older``: other versions that it accepts."""

    group: str
    version: str
    kind: str
    older: tuple[str, ...] = field(default=(), compare=False)

    def takes(self, found: "Target") -> bool:
        """Whether a body may be of this kind."""
        same_kind = (found.group, found.kind) == (self.group, self.kind)
        return same_kind and found.version in (self.version, *self.older)

    @property
    def api_version(self) -> str:
        return group_version(self.group, self.version)


def target_of(resource: ResourceInfo) -> Target:
    """The kind that the path of a resource accepts."""
    return Target(resource.gvr.group, resource.gvr.version, resource.kind)


class CustomKind(Protocol):
    """A custom kind, which has rules of its own for decoding. Its methods raise ApiError."""

    @property
    def node(self) -> Node:
        """Its type."""

    def default(self, doc: Doc) -> None:
        """Fill in its defaults, in place."""

    def decode(self, body: "Body", mode: str) -> tuple[Doc, list[str]]:
        """The pruned document of a body, and the warnings."""

    def finish(self, doc: Doc, refuse: Callable[[str], ApiError], *, applied: bool = False) -> tuple[Doc, list[str]]:
        """Prune the result of a patch in place; returns it and its unknown fields.

        applied: of a server-side apply. Nulls are kept: validation refuses those that no default replaces. Unknown
        fields of an object without properties are kept until it is stored: they count as a change.
        """


class Body(msgspec.Struct):
    """A parsed body. ``data``: the bytes of the request; ``json``: the same as JSON. ``pairs`` is set if keys are
    repeated; ``problems``: the repeated keys of YAML."""

    doc: Doc
    data: bytes
    json: bytes
    problems: list[str]
    pairs: object = None


class Bodies:
    """Decodes bodies of built-in and custom kinds."""

    def __init__(self, builtin: BuiltIn, normalizers: Normalizers) -> None:
        self.builtin = builtin
        self.normalizers = normalizers
        self.custom: Mapping[Target, CustomKind] = {}

    def builtin_node(self, target: Target) -> Node | None:
        """The type of a built-in kind, or None."""
        definition = self.builtin.definition(target.group, target.version, target.kind)
        return None if definition is None else self.builtin.nodes.get(definition) or self.builtin.node(definition)

    def decode(self, target: Target, data: bytes, content_type: str, mode: str) -> tuple[Doc, list[str]]:
        """The normalised document and the warnings of mode Warn. Raises ApiError (400)."""
        body = parse(target, data, content_type)
        if (kind := self.custom.get(target)) is not None:
            return kind.decode(body, mode)
        found = kind_in(target, body.doc, lambda text: unrecognized(target, text, data))
        if not target.takes(found):
            raise self._other_kind(target, found, body)
        node = cast("Node", self.builtin_node(target))

        def refuse(text: str) -> ApiError:
            return cannot_handle(found, target, text)

        clean, problems = self.normalize(node, body, refuse)
        if mode == STRICT and problems:
            raise refuse("strict decoding error: " + ", ".join(problems))
        clean["kind"], clean["apiVersion"] = target.kind, target.api_version
        return clean, problems if mode == WARN else []

    def normalize(self, node: Node, body: Body, refuse: Callable[[str], ApiError]) -> tuple[Doc, list[str]]:
        """The normalised document, and the errors of a strict decoder."""
        if body.pairs is None:
            try:
                return cast("Doc", self.normalizers.run(node, body.doc)), body.problems
            except Irregular:
                pass
        value = body.pairs if body.pairs is not None else _pairs(body)
        findings = strict.examine(node, value)
        if findings.fatal:
            raise refuse(findings.fatal)
        doc = gojson.decoded(value, node)
        strict.drop_unknown(node, doc)
        return cast("Doc", self.normalizers.run(node, doc)), body.problems + findings.strict

    def finish_patched(self, target: Target, doc: Doc, refuse: Callable[[str], ApiError]) -> tuple[Doc, list[str]]:
        """Normalise the result of a JSON or merge patch in place; returns it and the unknown fields that were dropped.

        Raises ``refuse(text)``.
        """
        if (kind := self.custom.get(target)) is not None:
            return kind.finish(doc, refuse)
        found = _kind_of(target, doc)
        if found != target and not self._same_in_old_form(target, found):
            raise self._patched_kind(target, found, doc, refuse)
        unread: list[str] = []
        if not doc.get("apiVersion") and doc.get("kind"):  # decoded as the internal version, with other names
            unread = [f'unknown field "{name}"' for name in sorted(doc) if name not in ("apiVersion", "kind")]
            doc = {}
        doc["kind"], doc["apiVersion"] = target.kind, target.api_version
        node = cast("Node", self.builtin_node(target))
        try:
            return cast("Doc", self.normalizers.run(node, doc)), unread
        except Irregular:
            findings = strict.examine(node, codec.decode_doc(codec.encode_sorted(doc)))  # a patch sorts what it changes
        if findings.fatal:
            raise refuse(findings.fatal)
        strict.drop_unknown(node, doc)
        return cast("Doc", self.normalizers.run(node, doc)), findings.strict

    def finish_merged(
        self, target: Target, doc: Doc, refuse: Callable[[str], ApiError], touched: Collection[str] | None = None
    ) -> tuple[Doc, list[str]]:
        """The same for the result of a strategic merge patch or a server-side apply.

        touched: the fields that may differ from those of a normalised document; None: all.
        """
        if (kind := self.custom.get(target)) is not None:
            return kind.finish(doc, refuse, applied=True)
        node = cast("Node", self.builtin_node(target))
        doc["kind"], doc["apiVersion"] = target.kind, target.api_version
        try:
            return self.normalizers.run_on(node, doc, touched), []
        except Irregular:
            problem = restore.first_problem(node, doc)
        if problem:
            raise refuse(problem)
        unknown = strict.examine(node, doc).strict
        strict.drop_unknown(node, doc)
        return cast("Doc", self.normalizers.run(node, restore.settle(node, doc))), unknown

    def _other_kind(self, target: Target, found: Target, body: Body) -> ApiError:
        """The error for a body of another kind or version than the path accepts. Errors in the body come first."""
        text = self._kind_problem(target, found, body.pairs or body.doc)
        return cannot_handle(found, target, text) if text else wrong_version(found.api_version, target)

    def _patched_kind(self, target: Target, found: Target, doc: Doc, refuse: Callable[[str], ApiError]) -> ApiError:
        text = self._kind_problem(target, found, doc)
        return refuse(text) if text else wrong_version(found.api_version, target)

    def _same_in_old_form(self, target: Target, found: Target) -> bool:
        """Whether it is the kind in a version that is no longer served, which can still be decoded. Definitions cannot:
        the old version sets defaults that are invalid in the new one."""
        if found.kind == "CustomResourceDefinition":
            return False
        registered = scheme.is_registered(self.builtin.registered, found.group, found.version, found.kind)
        return found.kind == target.kind and registered and self.builtin_node(found) is None

    def _kind_problem(self, target: Target, found: Target, value: object) -> str:
        place = scheme.scheme_of(target.group)
        known = scheme.is_registered(self.builtin.registered, found.group, found.version, found.kind)
        if not known or (scheme.scheme_of(found.group) != place and found.kind not in scheme.UNVERSIONED):
            return scheme.not_registered(found.group, found.version, found.kind, place)
        node = None if found.kind.endswith("List") else self.builtin_node(found)  # lists have no types
        if node is not None:
            findings = strict.examine(node, value)
            if findings.fatal:
                return findings.fatal
        if found.kind != target.kind:
            return scheme.no_conversion(found.version, found.kind, target.group, target.kind)
        return ""


def parse(target: Target, data: bytes, content_type: str) -> Body:
    """Parse JSON or YAML into a body. Raises ApiError (400)."""
    if "yaml" in content_type:
        return _parse_yaml(target, data)
    try:
        value, pairs = gojson.read(data)
    except gojson.SyntaxProblem as problem:
        raise unrecognized(target, f"couldn't get version/kind; json parse error: {problem}", data) from None
    doc = value if isinstance(value, dict) else _require_object(target, value, data)
    return Body(doc, data, data, [], pairs if isinstance(value, dict) else None)


def kind_in(target: Target, doc: Doc, refuse: Callable[[str], ApiError]) -> Target:
    """The kind that the body names, completed by that of the path. Raises ``refuse(text)``."""
    api_version, kind = doc.get("apiVersion"), doc.get("kind")
    for name, value in (("apiVersion", api_version), ("kind", kind)):
        if value is not None and not isinstance(value, str):
            said = strict.json_kind(value)
            text = f"json: cannot unmarshal {said} into Go struct field .{name} of type string"
            raise refuse(f"couldn't get version/kind; json parse error: {text}")
    group_version = cast("str", api_version or "")
    group, slash, version = group_version.rpartition("/")
    if "/" in group or (slash and not version and group):
        raise refuse(f"unexpected GroupVersion string: {group_version}")
    kind = cast("str", kind or target.kind)
    if not group and not version:
        return Target(target.group, target.version, kind)
    return Target(group, version or (target.version if group == target.group else ""), kind)


def _kind_of(target: Target, doc: Doc) -> Target:
    """The kind that a patched object names."""
    kind, api_version = doc.get("kind"), doc.get("apiVersion")
    if kind == target.kind and api_version == target.api_version:
        return target
    group, _, version = str(api_version or target.api_version).rpartition("/")
    return Target(group, version, str(kind or target.kind))


def cannot_handle(found: Target, target: Target, text: str) -> ApiError:
    message = f"{found.kind} in version {quote(found.version)} cannot be handled as a {target.kind}: {text}"
    return ApiError(400, "BadRequest", message)


def wrong_version(found: str, target: Target) -> ApiError:
    message = f"the API version in the data ({found}) does not match the expected API version ({target.api_version})"
    return ApiError(400, "BadRequest", message)


def unrecognized(target: Target, text: str, data: bytes) -> ApiError:
    message = f"the object provided is unrecognized (must be of type {target.kind}): {text} ({_summary(data)})"
    return ApiError(400, "BadRequest", message)


def _summary(data: bytes) -> str:
    if not data:
        return "<empty>"
    more = " ..." if len(data) > _SUMMARY else ""
    if data.startswith(b"{"):
        return data[:_SUMMARY].decode("utf-8", "replace") + more
    return data[:_SUMMARY].hex() + more


def misread(data: bytes) -> str:
    """The decoding error of a webhook's response that is not an object; empty if it is one."""
    try:
        value, _ = yaml_body.load(data)
    except yaml_body.YamlError as error:
        return f"couldn't get version/kind; json parse error: {error}"
    if isinstance(value, dict):
        return ""
    text = f"json: cannot unmarshal {strict.json_kind(value)} into Go value of type {META_STRUCT}"
    return f"couldn't get version/kind; json parse error: {text}"


def _require_object(target: Target, value: object, data: bytes) -> Doc:
    if value is None:
        return {}
    text = f"json: cannot unmarshal {strict.json_kind(value)} into Go value of type {META_STRUCT}"
    raise unrecognized(target, f"couldn't get version/kind; json parse error: {text}", data)


def _parse_yaml(target: Target, data: bytes) -> Body:
    try:
        value, repeated = yaml_body.load(data)
    except yaml_body.YamlError as error:
        raise unrecognized(target, str(error), data) from None
    problems = []
    if repeated:
        lines = "\n  ".join(repeated)
        problems = [f"yaml: unmarshal errors:\n  {lines}"]
    doc = value if isinstance(value, dict) else _require_object(target, value, data)
    return Body(cast("Doc", doc), data, codec.encode_sorted(doc), problems)


def _pairs(body: Body) -> object:
    return gojson.parse_pairs(body.json.decode("utf-8", "replace"))
