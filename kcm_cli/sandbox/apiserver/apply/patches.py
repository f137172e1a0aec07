"""PATCH with a JSON patch, a merge patch or a strategic merge patch: from bytes to the patched object.

upstream: apiserver pkg/endpoints/handlers/patch.go
"""

import re
from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, cast

from kcm_cli.machinery import codec
from kcm_cli.machinery import patches as json_patches
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.whole_floats import settle_numbers
from kcm_cli.planning.actions import JSON_PATCH, MERGE, STRATEGIC_MERGE
from kcm_cli.sandbox.apiserver.apply import strategic
from kcm_cli.sandbox.apiserver.apply.gofmt import go_value
from kcm_cli.sandbox.apiserver.schema import Schemas, Target, gojson, strict, yaml_body
from kcm_cli.sandbox.apiserver.schema.bodies import IGNORE, STRICT, WARN
from kcm_cli.sandbox.apiserver.schema.model import Field, Node
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.sandbox.apiserver.validation.go_print import metadata

copy = json_patches.copy
MAX_OPERATIONS = 10_000
_TEXT = Node("string", go="string")
_ANY = Node("any", go="interface {}")
_OPERATION = Node(
    "struct",
    go="handlers.jsonPatchOp",
    struct="jsonPatchOp",
    fields={name: Field(name, _ANY if name == "value" else _TEXT) for name in ("op", "path", "from", "value")},
)
_OPERATIONS = Node("list", go="[]handlers.jsonPatchOp", item=_OPERATION)
_RAW_OPERATIONS = Node("list", go="jsonpatch.Patch", item=Node("map", go="jsonpatch.Operation", item=_ANY))
_MAP = Node("map", go="map[string]interface {}", item=_ANY)
_ESCAPES = re.compile(rb"\\/|\\u[dD][89a-fA-F]")
"""Escapes that YAML does not know."""
_CONTROL = re.compile(rb"\x7f|\xc2[\x80-\x9f]|\xe2\x80[\xa8\xa9]|\xef\xbf[\xbe\xbf]")
"""Control characters, and line ends beyond ASCII."""
_TAB = re.compile(rb"[\xef\xbb\xbf \r\n]*\t")
"""A tab before the first token."""
_LONG_KEY_BYTES = 1000
_LONG_KEY = re.compile(rb'"[^"]{1000,}+"\s*:')
_KEY_AT_END = re.compile(rb'"[ \t]*[\r\n]\s*:')
"""A key whose line ends before its colon."""


class Patched(NamedTuple):
    """The patched object, and the texts for Warning headers."""

    doc: Doc
    warnings: list[str]


class Patches:
    """Applies the three kinds of patches that edit the live object."""

    def __init__(self, schemas: Schemas) -> None:
        self._schemas = schemas

    def apply(self, target: Target, current: Doc, body: bytes, content_type: str, mode: str) -> Patched:
        """See ``Patching.patch``."""
        media = content_type.partition(";")[0].strip()
        if media == JSON_PATCH:
            return self._json(target, current, body, mode)
        if media == MERGE:
            return self._merge(target, current, body, mode)
        if media == STRATEGIC_MERGE and not self._schemas.is_custom(target):
            return self._strategic(target, current, body, mode)
        raise ApiError(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})

    def merged(self, target: Target, current: Doc, body: bytes, content_type: str) -> Doc:
        """The result of a patch that ``apply`` accepts, before it is decoded. Changes ``current``."""
        value, _ = gojson.read(body)
        if content_type == JSON_PATCH:
            return cast("Doc", json_patches.json_patch(current, _operations(value)))
        if content_type == MERGE:
            return json_patches.merge_patch(current, cast("Doc", value))
        node = self._schemas.node(target)
        assert node is not None
        return strategic.merge(node, current, cast("Doc", value or {}))

    def _json(self, target: Target, current: Doc, body: bytes, mode: str) -> Patched:
        prefix = "" if mode == IGNORE else "error decoding patch: "
        value, problems = _read(body, _RAW_OPERATIONS if mode == IGNORE else _OPERATIONS, prefix)
        operations = _operations(value)
        if len(operations) > MAX_OPERATIONS:
            limit = f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
            raise ApiError(413, "RequestEntityTooLarge", f"Request entity too large: {limit}")
        try:
            patched = json_patches.json_patch(current, operations)
        except (PatchError, RecursionError):
            raise _generic_refusal() from None
        strict_errors = [] if mode == IGNORE else [f"json patch {text}" for text in problems]
        return self._finish(target, patched, strict_errors, mode)

    def _merge(self, target: Target, current: Doc, body: bytes, mode: str) -> Patched:
        value, problems = _read(body, _MAP, "error decoding patch: ")
        if value is None:
            raise ApiError(400, "BadRequest", "Invalid JSON Patch")
        patched = json_patches.merge_patch(current, cast("Doc", value))
        return self._finish(target, patched, problems if mode != IGNORE else [], mode, value)

    def _finish(
        self, target: Target, patched: object, problems: list[str], mode: str, merged: object = None
    ) -> Patched:
        """Decode the result of the patch, like the body of a request. merged: a merge patch, for errors."""
        if not isinstance(patched, dict):
            raise invalid_patch(codec.encode(patched).decode(), "couldn't get version/kind; json parse error")

        pristine = _encoded(patched)  # for errors; cheaper than a copy

        def refuse(text: str) -> ApiError:
            doc = codec.decode_doc(pristine)
            if isinstance(meta := doc.get("metadata"), dict):
                doc["metadata"] = metadata(meta)
            shown = _sorted(doc, merged if isinstance(merged, dict) else {})
            return invalid_patch(codec.encode(shown).decode(), text)

        doc, unknown = self._schemas.finish_patched(target, patched, refuse)
        return Patched(doc, _judge(problems + unknown, mode, refuse))

    def _strategic(self, target: Target, current: Doc, body: bytes, mode: str) -> Patched:
        value, problems = _read(body, _MAP, "")
        patch = cast("Doc", value or {})
        node = self._schemas.node(target)
        assert node is not None
        whole = strategic.DIRECTIVE in patch
        touched = None if whole else {*patch, *(name.partition("/")[2] for name in patch)}  # "$setElementOrder/NAME"
        try:
            merged = strategic.merge(node, current, patch)
        except strategic.StrategicError as error:
            raise strategic_refusal(error) from None
        shown = codec.encode(patch) if b"$" in body or b"null" in body else body  # without what the merge has removed

        def refuse(text: str) -> ApiError:
            sent, _ = gojson.read(shown)  # decoding changes the patch, which the result shares
            return invalid_patch(go_value(sent), text)

        doc, unknown = self._schemas.finish_merged(target, merged, refuse, touched)
        strict_errors = problems + sorted(unknown) if mode != IGNORE else []
        return Patched(doc, _judge(strict_errors, mode, refuse))


def _encoded(patched: Doc) -> bytes:
    """Raises ApiError (422) if ``copy`` operations nested it too deep."""
    try:
        data = codec.encode(patched)
        gojson.check_depth(data)
    except (RecursionError, gojson.SyntaxProblem):
        raise _generic_refusal() from None
    return data


def _judge(problems: list[str], mode: str, refuse: Callable[[str], ApiError]) -> list[str]:
    """The warnings in mode Warn. Raises ``refuse(text)`` in mode Strict."""
    if mode == STRICT and problems:
        raise refuse("strict decoding error: " + ", ".join(problems))
    return problems if mode == WARN else []


def _operations(value: object) -> list[Doc]:
    """The operations of a JSON patch. The patch and each operation may be null."""
    return [one or {} for one in cast("list[Doc | None]", value or [])]


def _sorted(value: object, patch: object) -> object:
    """The result of a merge patch as errors show it: the keys of what the patch has touched or brought are sorted, all
    else is as it was."""
    if isinstance(value, list):
        return [_sorted(item, item) for item in value]
    if not isinstance(value, dict):
        return value
    touched = patch if isinstance(patch, dict) else {}
    return {key: _sorted(value[key], touched[key]) if key in touched else value[key] for key in sorted(value)}


def _read(body: bytes, node: Node, prefix: str) -> tuple[object, list[str]]:
    """A patch document, and its unknown or repeated fields. Raises ApiError (400). ``prefix``: of its message."""
    try:
        value, pairs = gojson.read(body)
    except gojson.SyntaxProblem as problem:
        raise ApiError(400, "BadRequest", f"{prefix}{problem}") from None
    if pairs is None and node is _MAP and isinstance(value, dict):
        return value, []
    findings = strict.examine(node, value if pairs is None else pairs)
    if findings.fatal:
        raise ApiError(400, "BadRequest", prefix + findings.fatal)
    return value, findings.strict


class Configuration:
    """The body of an apply patch. It is read when it is applied."""

    def __init__(self, body: bytes, mode: str) -> None:
        self._body, self._mode = body, mode

    @property
    def doc(self) -> Doc:
        """Raises ApiError (400)."""
        return self._decoded[0]

    def judge(self) -> list[str]:
        """The texts for Warning headers, once the configuration is applied. Raises ApiError (400)."""
        repeated = self._decoded[1]
        if not repeated or self._mode == IGNORE:
            return []
        problem = "error converting YAML to JSON: yaml: unmarshal errors:\n  " + "\n  ".join(repeated)
        if self._mode == STRICT:
            raise ApiError(400, "BadRequest", f"error strict decoding YAML: {problem}")
        return [problem]

    @cached_property
    def _decoded(self) -> tuple[Doc, list[str]]:
        """The configuration, and what strict decoding finds."""
        try:
            value, repeated = _load(self._body)
        except yaml_body.YamlError as error:
            raise ApiError(400, "BadRequest", f"error decoding YAML: error converting YAML to JSON: {error}") from None
        if value is None:
            value = {}
        if not isinstance(value, dict):
            text = f"json: cannot unmarshal {strict.json_kind(value)} into Go value of type map[string]interface {{}}"
            while_decoding = f"error unmarshaling JSON: while decoding JSON: {text}"
            raise ApiError(400, "BadRequest", f"error decoding YAML: {while_decoding}")
        return cast("Doc", settle_numbers(value)), repeated


def _load(body: bytes) -> tuple[object, list[str]]:
    """Read JSON with the fast parser, unless YAML would read it differently, and everything else as YAML."""
    if _differs_in_yaml(body):
        return yaml_body.load(body)
    try:
        value, pairs = gojson.read(body)
        if pairs is None:
            return value, []
    except gojson.SyntaxProblem:
        pass  # it may be YAML, and otherwise the error is the YAML parser's
    return yaml_body.load(body)


def _differs_in_yaml(body: bytes) -> bool:
    """Whether YAML may read a JSON text differently."""
    return bool(
        (b"\\" in body and _ESCAPES.search(body))
        or ((b"\x7f" in body or not body.isascii()) and _CONTROL.search(body))
        or _TAB.match(body)
        or ((b"\n" in body or b"\r" in body) and _KEY_AT_END.search(body))
        or (len(body) > _LONG_KEY_BYTES and _LONG_KEY.search(body))
    )


def invalid_patch(value: str, text: str) -> ApiError:
    """422: the patch applies, but its result cannot be decoded."""
    message = f"Invalid value: {quote(value)}: {text}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return ApiError(422, "Invalid", f' "" is invalid: patch: {message}', details={"causes": [cause]})


def _generic_refusal() -> ApiError:
    return ApiError(422, "Invalid", "the server rejected our request due to an error in our request", details={})


def strategic_refusal(error: strategic.StrategicError) -> ApiError:
    """The response to a strategic merge patch that cannot be merged."""
    if error.code == 422:
        return _generic_refusal()
    return ApiError(error.code, "BadRequest" if error.code == 400 else "", str(error))
