"""Dispatches writes to mutating and validating webhooks.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/{mutating,validating}/dispatcher.go
"""

import asyncio
import logging
from base64 import b64decode

from kcm_cli.machinery import codec, patches
from kcm_cli.machinery.errors import PatchError
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.admission.dynamic.replacing import Replacer
from kcm_cli.sandbox.apiserver.admission.dynamic.reviews import Patch, Reviewer, ReviewError
from kcm_cli.sandbox.apiserver.admission.dynamic.rounds import Rounds
from kcm_cli.sandbox.apiserver.admission.dynamic.views import View
from kcm_cli.sandbox.apiserver.admission.dynamic.webhooks import Webhook, Webhooks
from kcm_cli.sandbox.apiserver.errors import internal
from kcm_cli.sandbox.apiserver.schema import Schemas, gojson
from kcm_cli.sandbox.apiserver.schema.strict import json_kind
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes
from kcm_cli.sandbox.apiserver.unconverted import converted, one_request

_log = logging.getLogger(__name__)


class MutatingWebhooks:
    """Calls webhooks one after the other. Each sees the changes of the previous ones."""

    def __init__(self, webhooks: Webhooks, reviewer: Reviewer, schemas: Schemas) -> None:
        self.webhooks = webhooks
        self._reviewer = reviewer
        self._replacer = Replacer(schemas)

    async def admit(self, attrs: Attributes, rounds: Rounds) -> None:
        """Change the object. Raises ApiError."""
        reinvocation = rounds.webhooks
        if rounds.second:
            reinvocation.begin(attrs)
        with one_request():
            async for webhook, view in self.webhooks.wanted(attrs):
                if rounds.second and not reinvocation.due(webhook.key):
                    continue
                if await self._call(webhook, view):
                    reinvocation.changed()
                    rounds.needed = True
                if webhook.doc.get("reinvocationPolicy") == "IfNeeded":
                    reinvocation.add(webhook.key)
        reinvocation.end(attrs)

    async def _call(self, webhook: Webhook, view: View) -> bool:
        """Call a webhook. Returns whether it changed the object. Raises ApiError."""
        try:
            patch = await self._reviewer.review(webhook, view, mutating=True)
            return bool(patch.text) and await self._patch(webhook, view, patch)
        except ReviewError as error:
            _fail(webhook, error)
            return False

    async def _patch(self, webhook: Webhook, view: View, patch: Patch) -> bool:
        """Apply a patch. Returns whether it changed the object. Raises ReviewError, ApiError."""
        operations = _operations(patch)
        if not operations:
            return False
        current = view.obj
        if current is None:
            raise internal(
                f"admission webhook {quote(webhook.name)} attempted to modify the object, which is not supported for "
                "this operation"
            )
        if patch.kind != "JSONPatch":
            raise ReviewError(f"unsupported patch type {quote(patch.kind)}")
        before = patches.copy(view.attrs.obj)
        try:
            changed = patches.json_patch(patches.copy(current), operations)
        except PatchError as error:
            raise internal(str(error)) from None
        await converted(lambda: self._replacer.replace(view, patches.copy(changed)))
        return view.attrs.obj != before


class ValidatingWebhooks:
    """Calls webhooks concurrently."""

    def __init__(self, webhooks: Webhooks, reviewer: Reviewer) -> None:
        self.webhooks = webhooks
        self._reviewer = reviewer

    async def validate(self, attrs: Attributes) -> None:
        """Raises ApiError: the first error, in the order of the webhooks."""
        with one_request():
            wanted = [each async for each in self.webhooks.wanted(attrs)]
            errors = await asyncio.gather(*(self._call(webhook, view) for webhook, view in wanted))
        for error in errors:
            if error is not None:
                raise error

    async def _call(self, webhook: Webhook, view: View) -> ApiError | None:
        try:
            await self._reviewer.review(webhook, view, mutating=False)
        except ReviewError as error:
            try:
                _fail(webhook, error)
            except ApiError as failure:
                return failure
        except ApiError as refusal:
            return refusal
        return None


def _fail(webhook: Webhook, error: ReviewError) -> None:
    """Apply the failurePolicy of a webhook whose call failed. Raises ApiError 500."""
    failure = f"failed calling webhook {quote(webhook.name)}: {error}"
    if webhook.ignores_failures:
        _log.warning(
            "Failed calling webhook, failing open", extra={"fields": {"webhook": webhook.name, "err": failure}}
        )
        return
    _log.warning("Failed calling webhook, failing closed", extra={"fields": {"webhook": webhook.name, "err": failure}})
    raise internal(failure)


def _operations(patch: Patch) -> list[dict[str, object]]:
    """The operations of a JSON patch. Raises ReviewError."""
    data = b64decode(patch.text)
    if data.strip() == b"null":
        return []
    try:
        value = codec.decode(data, object)
    except codec.DecodeError as error:
        raise _undecodable(gojson.syntax_error(data.decode(errors="replace")) or str(error)) from None
    if not isinstance(value, list):
        raise _undecodable(f"json: cannot unmarshal {json_kind(value)} into Go value of type jsonpatch.Patch")
    for one in value:
        if not isinstance(one, dict | None):
            raise _undecodable(f"json: cannot unmarshal {json_kind(one)} into Go value of type jsonpatch.Operation")
    return [one or {} for one in value]


def _undecodable(why: str) -> ReviewError:
    return ReviewError(f"received undecodable patch in webhook response: {why}")
