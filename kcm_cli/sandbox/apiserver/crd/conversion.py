"""Conversion webhooks, which convert objects of a custom kind between its versions.

Reads do not wait for webhooks. So stored objects are converted before they are read, and the results are cached by
object version. Lists and watches use them, as they use upstream's watch cache; all else calls the webhook. Objects that
are not stored are converted for one request (``unconverted``).

upstream: apiextensions-apiserver pkg/apiserver/conversion/webhook_converter.go (v1.36)
"""

import asyncio
import hashlib
import random
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import cast

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.schema.bodies import misread
from kcm_cli.sandbox.apiserver.schema.scheme import WEBHOOK_SCHEME, not_registered
from kcm_cli.sandbox.apiserver.types import ApiError, FieldError, Tree
from kcm_cli.sandbox.apiserver.unconverted import MADE, Unconverted
from kcm_cli.sandbox.apiserver.validation.labels import validate_annotations, validate_labels
from kcm_cli.sandbox.apiserver.webhooks import CallError, Calls

TIMEOUT_S = 30.0
_GROUP = "apiextensions.k8s.io"
_VERSIONS = ("v1", "v1beta1")
_KEPT, _KEPT_BYTES = 2000, 16 << 20
"""The limits for the cache of a definition, in objects and in bytes of their JSON."""
_SAME = (("kind", "kind"), ("name", "name"), ("namespace", "namespace"), ("uid", "UID"))
_CHANGEABLE = ("labels", "annotations")

_Key = tuple[str, str, int, str]


class _Result(msgspec.Struct, frozen=True):
    status: str = ""
    message: str = ""


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    converted_objects: list[object] | None = None
    result: _Result = _Result()


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


class _Failed(Exception):
    """An error of a call; its text follows the name of the webhook."""


class Webhook:
    """The conversion webhook of one definition."""

    def __init__(self, config: Tree, calls: Calls, rng: random.Random) -> None:
        """``config``: ``spec.conversion.webhook``."""
        self._client: Tree = config.get("clientConfig") or {}
        self._review = next((one for one in config.get("conversionReviewVersions") or () if one in _VERSIONS), "")
        self._calls = calls
        self._rng = rng
        self._kept: OrderedDict[_Key, bytes] = OrderedDict()
        self._bytes = 0

    async def prepare(
        self, docs: Sequence[Tree], version: str, settled: Callable[[Tree], Tree], *, cached: bool
    ) -> None:
        """Convert stored objects to another apiVersion for ``prepared``. All of them are available until the next await
        of the caller, however many they are. ``settled``: makes what the webhook gets of one. ``cached``: not those
        that are known. Raises ApiError 500.
        """
        wanted = {_key(doc, version): doc for doc in docs if doc.get("apiVersion") != version}
        made: dict[_Key, bytes] = {}  # other requests may remove these from the cache meanwhile
        for key, doc in wanted.items():
            known = self._kept.get(key) if cached else None
            made[key] = codec.encode(await self.convert(settled(doc), version)) if known is None else known
            self._keep(key, made[key])
            self._limit()
        for key, found in made.items():
            self._keep(key, found)
        asyncio.get_running_loop().call_soon(self._limit)

    def _keep(self, key: _Key, found: bytes) -> None:
        self._bytes += len(found) - len(self._kept.get(key, b""))
        self._kept[key] = found
        self._kept.move_to_end(key)

    def _limit(self) -> None:
        while len(self._kept) > _KEPT or self._bytes > _KEPT_BYTES:
            _, found = self._kept.popitem(last=False)
            self._bytes -= len(found)

    def known(self, doc: Tree, version: str) -> Doc:
        """A copy of any object, converted to another apiVersion. Raises Unconverted before it was converted for this
        request, and ApiError 500 if that failed.
        """
        made = MADE.get()
        key = hashlib.sha256(codec.encode_sorted(doc)).hexdigest(), "", version

        async def convert() -> None:
            assert made is not None
            try:
                made[key] = await self.convert(doc, version)
            except ApiError as error:
                made[key] = error

        found = None if made is None else made.get(key)
        if found is None:
            raise Unconverted(convert)
        if isinstance(found, ApiError):
            raise found
        return cast("Doc", copy(found))

    def prepared(self, doc: Tree, version: str) -> Doc | None:
        """A copy of the object that ``prepare`` converted, or None."""
        found = self._kept.get(_key(doc, version))
        if found is None:
            return None
        fresh: Tree = codec.decode_doc(found)
        theirs = {field: fresh["metadata"][field] for field in _CHANGEABLE if field in fresh["metadata"]}
        ours = {field: value for field, value in doc["metadata"].items() if field not in _CHANGEABLE}
        return {**fresh, "metadata": {**ours, **theirs}}

    async def convert(self, doc: Tree, version: str) -> Doc:
        """An object, converted to another apiVersion. Raises ApiError 500."""
        group, _, name = str(doc.get("apiVersion")).rpartition("/")
        what = f"conversion webhook for {group}/{name}, Kind={doc.get('kind')}"
        try:
            found = await self._call(doc, version)
            return _converted_object(doc, found, version)
        except _Failed as error:
            raise ApiError(500, "", f"{what} {error}") from None

    async def _call(self, doc: Tree, version: str) -> list[object]:
        if not self._review:
            raise ApiError(500, "", "no supported conversion review versions")
        uid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        request = {"uid": uid, "desiredAPIVersion": version, "objects": [doc]}
        document: Tree = {"kind": "ConversionReview", "apiVersion": f"{_GROUP}/{self._review}", "request": request}
        try:
            body = await self._calls.post(self._client, codec.encode(document), TIMEOUT_S)
        except CallError as error:
            raise _Failed(f"failed: {error}") from None
        review = _decoded(body)
        if why := _problem(review, uid, self._review):
            raise _Failed(f"failed: {why}")
        assert review.response is not None
        return review.response.converted_objects or []


def _key(doc: Tree, version: str) -> _Key:
    """An earlier state may have the resourceVersion at which it no longer matched a watch, so the content counts."""
    meta = doc["metadata"]
    return meta.get("uid") or "", meta.get("resourceVersion") or "", hash(codec.encode(doc)), version


def _decoded(body: bytes) -> _Review:
    """Raises _Failed."""
    try:
        return codec.decode(body, _Review)
    except codec.DecodeError as error:
        raise _Failed(f"failed: {misread(body) or error}") from None


def _problem(review: _Review, uid: str, version: str) -> str:
    group, _, found = review.api_version.rpartition("/")
    if review.kind != "ConversionReview" or group != _GROUP or found not in _VERSIONS:
        return not_registered(group, found, review.kind, WEBHOOK_SCHEME)
    if found != version:
        return f"converting ({found}.{review.kind}) to ({version}.{review.kind}): unknown conversion"
    response = review.response
    if response is None:
        return "no response provided"
    if version == "v1" and response.uid != uid:
        return f"expected response.uid={quote(uid)}, got {quote(response.uid)}"
    if response.result.status == "Success":
        return ""
    return response.result.message or f"response.result.status was '{response.result.status}', not 'Success'"


def _converted_object(doc: Tree, found: list[object], version: str) -> Doc:
    """The only object of a response, with the metadata that webhooks cannot change. Raises _Failed."""
    if len(found) != 1:
        raise _Failed(f"returned {len(found)} objects, expected 1")
    converted = found[0]
    if converted is None:
        raise ApiError(500, "", "unexpected end of JSON input")
    if not isinstance(converted, dict):
        raise _Failed("failed: Object 'Kind' is missing in 'null'")
    kind, got = converted.get("kind") or "", converted.get("apiVersion") or ""
    if got != version:
        why = f"invalid groupVersion (expected {version}, received {got})"
        raise _Failed(f"returned invalid object at index 0: {why}")
    if kind != doc["kind"]:
        raise _Failed(f"returned invalid object at index 0: invalid kind (expected {doc['kind']}, received {kind})")
    meta = converted.get("metadata")
    _check_same(doc, converted, meta if isinstance(meta, dict) else {})
    try:
        converted["metadata"] = _restored(doc["metadata"], "metadata" in converted, meta)
    except _Failed as error:
        raise _Failed(f"returned invalid metadata: {error}") from None
    return converted


def _check_same(doc: Tree, converted: Tree, meta: Tree) -> None:
    for field, shown in _SAME:
        before, after = (doc, converted) if field == "kind" else (doc["metadata"], meta)
        one, other = before.get(field) or "", after.get(field) or ""
        if one != other:
            raise _Failed(f"returned invalid object: must have the same {shown}: {one} != {other}")


def _restored(original: Tree, present: bool, metadata: object) -> Doc:
    """The original metadata with the labels and annotations of the response. Raises _Failed."""
    if not present:
        raise _Failed("missing metadata in converted object")
    if not isinstance(metadata, dict):
        raise _Failed(f"invalid metadata of type {_go_type(metadata)} in converted object")
    meta = cast("Doc", copy(original))
    for field in _CHANGEABLE:
        value = metadata.get(field)
        if value is None:
            meta.pop(field, None)
            continue
        if not isinstance(value, dict):
            raise _Failed(f"invalid metadata.{field} of type {_go_type(value)} in converted object")
        for key, text in value.items():
            if not isinstance(text, str):
                kind = _go_type(text)
                raise _Failed(f"metadata.{field}[{key}] must be a string, but is {kind} in converted object")
        if value != meta.get(field) and (errors := _field_errors(field, cast("dict[str, str]", value))):
            raise _Failed(aggregated(f"{error.field}: {error.message}" for error in errors))
        meta[field] = value
    return meta


def _field_errors(field: str, value: dict[str, str]) -> list[FieldError]:
    if field == "labels":
        return [*validate_labels(value, "metadata.labels")]
    return [*validate_annotations(value, "metadata.annotation")]


def _go_type(value: object) -> str:
    names = {bool: "bool", int: "int64", float: "float64", str: "string", dict: "map[string]interface {}"}
    return "<nil>" if value is None else names.get(type(value), "[]interface {}")
