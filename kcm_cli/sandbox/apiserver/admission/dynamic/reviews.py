"""AdmissionReviews: requests to webhooks, and their responses.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/request/admissionreview.go
"""

import random
import uuid
from typing import cast

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.patches import copy
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.whole_floats import has_whole_float, settle_numbers
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import admission_request
from kcm_cli.sandbox.apiserver.admission.dynamic.views import View
from kcm_cli.sandbox.apiserver.admission.dynamic.webhooks import Webhook
from kcm_cli.sandbox.apiserver.errors import bad_request
from kcm_cli.sandbox.apiserver.schema.bodies import misread
from kcm_cli.sandbox.apiserver.schema.scalars import base64_bytes
from kcm_cli.sandbox.apiserver.schema.scheme import WEBHOOK_SCHEME, not_registered
from kcm_cli.sandbox.apiserver.types import ApiError, Tree
from kcm_cli.sandbox.apiserver.webhooks import CallError, Calls, UnusableConfig

_GROUP, _KIND = "admission.k8s.io", "AdmissionReview"
_VERSIONS = ("v1", "v1beta1")
_SAFE_IN_DRY_RUN = ("None", "NoneOnDryRun")
_DEFAULT_TIMEOUT_S = 10


class ReviewError(Exception):
    """The webhook could not be called, or its response is invalid."""


class _Result(msgspec.Struct, omit_defaults=True, rename="camel"):
    metadata: dict[str, object] = {}
    status: str = ""
    message: str = ""
    reason: str = ""
    details: dict[str, object] | None = None
    code: int = 0


class _Response(msgspec.Struct, rename="camel"):
    uid: str = ""
    allowed: bool = False
    status: _Result | None = None
    patch: str | None = None
    patch_type: str | None = None
    warnings: list[str] | None = None


class _Review(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    response: _Response | None = None


class Patch(msgspec.Struct, frozen=True):
    """The patch of a mutating webhook. text: valid base64, or empty. kind: patchType."""

    text: str = ""
    kind: str = ""


class Reviewer:
    """Calls webhooks."""

    def __init__(self, calls: Calls, rng: random.Random) -> None:
        self._calls = calls
        self._rng = rng
        self.possible = calls.possible

    async def review(self, webhook: Webhook, view: View, *, mutating: bool) -> Patch:
        """Call a webhook and return its patch. Raises ReviewError; ApiError if it denies the write."""
        attrs = view.attrs
        if attrs.dry_run and webhook.doc.get("sideEffects") not in _SAFE_IN_DRY_RUN:
            raise bad_request(f"admission webhook {quote(webhook.name)} does not support dry run")
        version = next((v for v in webhook.doc.get("admissionReviewVersions") or () if v in _VERSIONS), None)
        if version is None:
            raise ReviewError(
                "could not create admission objects: webhook does not accept known AdmissionReview versions "
                "(v1, v1beta1)"
            )
        uid = str(uuid.UUID(int=self._rng.getrandbits(128), version=4))
        body = codec.encode(_request(version, uid, view))
        timeout = webhook.doc.get("timeoutSeconds") or _DEFAULT_TIMEOUT_S
        try:
            review = _decoded(await self._calls.post(webhook.doc["clientConfig"], body, timeout), version)
        except UnusableConfig as error:
            raise ReviewError(f"could not get REST client: {error}") from None
        except CallError as error:
            raise ReviewError(f"failed to call webhook: {error}") from None
        response = _checked(review, version, uid, mutating=mutating)
        attrs.warnings += response.warnings or ()
        if not response.allowed:
            raise _refusal(webhook.name, response.status)
        if version != "v1":
            return Patch(response.patch or "", "JSONPatch") if mutating else Patch()
        return Patch(response.patch or "", response.patch_type or "")


def _request(version: str, uid: str, view: View) -> Tree:
    request = {**admission_request(view), "uid": uid, "object": _written(view.obj), "oldObject": view.old}
    return {"kind": "AdmissionReview", "apiVersion": f"admission.k8s.io/{version}", "request": request}


def _written(obj: Tree | None) -> Tree | None:
    """The object with whole floats as integers, as it is stored."""
    return cast("Tree", settle_numbers(copy(obj))) if has_whole_float(obj) else obj


def _decoded(data: bytes, version: str) -> _Review:
    """Decode a response. Its default kind and apiVersion are the request's. Raises CallError."""
    try:
        review = codec.decode(data, _Review)
    except codec.DecodeError as error:
        raise CallError(misread(data) or str(error)) from None
    if review.response is not None and review.response.patch:
        try:
            review.response.patch = str(base64_bytes(review.response.patch))
        except FormatError as error:
            raise CallError(str(error)) from None
    kind, (group, _, found) = review.kind or _KIND, (review.api_version or f"{_GROUP}/{version}").rpartition("/")
    if kind != _KIND or group != _GROUP or found not in _VERSIONS:
        raise CallError(not_registered(group, found, kind, WEBHOOK_SCHEME))
    if found != version:
        raise CallError(f"converting ({found}.{kind}) to ({version}.{kind}): unknown conversion")
    return review


def _checked(review: _Review, version: str, uid: str, *, mutating: bool) -> _Response:
    """The response of a review. Raises ReviewError if it is invalid."""
    response = review.response
    if response is None:
        raise ReviewError("received invalid webhook response: webhook response was absent")
    why = _fault(review, response, uid, mutating=mutating) if version == "v1" else ""
    if why:
        raise ReviewError(f"received invalid webhook response: {why}")
    return response


def _fault(review: _Review, response: _Response, uid: str, *, mutating: bool) -> str:
    if response.uid != uid:
        return f"expected response.uid={quote(uid)}, got {quote(response.uid)}"
    if review.api_version != "admission.k8s.io/v1" or review.kind != "AdmissionReview":
        group_version = review.api_version if "/" in review.api_version else f"/{review.api_version}"
        return (
            "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, "
            f"got {group_version}, Kind={review.kind}"
        )
    if not mutating and response.patch:
        return "validating webhook may not return response.patch"
    if not mutating and response.patch_type is not None:
        return "validating webhook may not return response.patchType"
    if response.patch and response.patch_type is None:
        return "webhook returned response.patch but not response.patchType"
    if not response.patch and response.patch_type is not None:
        return "webhook returned response.patchType but not response.patch"
    if response.patch_type == "":
        return 'webhook returned invalid response.patchType of ""'
    return ""


def _refusal(name: str, result: _Result | None) -> ApiError:
    """The error with the webhook's status."""
    result = result or _Result()
    code = max(result.code, 400)
    denied = f"admission webhook {quote(name)} denied the request"
    why = result.message or result.reason
    error = ApiError(code, result.reason, f"{denied}: {why}" if why else f"{denied} without explanation")
    if result.status not in ("", "Success"):
        error.status["status"] = result.status
    if result.details is not None:
        error.status["details"] = result.details
    return error
