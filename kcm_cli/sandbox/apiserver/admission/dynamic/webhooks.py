"""The configured webhooks, compiled after changes.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go
"""

from collections.abc import AsyncIterator, Iterator

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.admission.dynamic.chosen import Chosen, Kept
from kcm_cli.sandbox.apiserver.admission.dynamic.conditions import ConditionError, MatchConditions
from kcm_cli.sandbox.apiserver.admission.dynamic.matching import REGISTRATION, Match
from kcm_cli.sandbox.apiserver.admission.dynamic.scope import request_scope
from kcm_cli.sandbox.apiserver.admission.dynamic.views import Versions, View
from kcm_cli.sandbox.apiserver.errors import forbidden
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

MUTATING = GVR(REGISTRATION, "v1", "mutatingwebhookconfigurations")
VALIDATING = GVR(REGISTRATION, "v1", "validatingwebhookconfigurations")


class Webhook(msgspec.Struct, frozen=True):
    """A webhook of a configuration. key: unique among all webhooks."""

    key: str
    name: str
    doc: Tree
    match: Match
    conditions: MatchConditions

    @property
    def ignores_failures(self) -> bool:
        return bool(self.doc.get("failurePolicy") == "Ignore")


class Webhooks(Chosen[Webhook]):
    """All webhooks of a kind of configuration, sorted by the configuration's name."""

    def __init__(self, store: Store, versions: Versions, authorizer: Authorizer, gvr: GVR) -> None:
        super().__init__(store, versions, (gvr,), self._compile, reviews=False)
        self._authorizer = authorizer
        self._gvr = gvr
        self._kept = Kept(_compile)

    async def wanted(self, attrs: Attributes) -> AsyncIterator[tuple[Webhook, View]]:
        """The webhooks that match a write, each at the time when it is next, with prepared views; inside
        ``one_request``. Raises ApiError."""
        for webhook, view in self.matching(attrs):
            await view.prepare()
            if not webhook.conditions or self._conditions_hold(webhook, view):
                yield webhook, view

    def _conditions_hold(self, webhook: Webhook, view: View) -> bool:
        try:
            scope = {**request_scope(view, self._store, self._authorizer), "namespaceObject": None}  # only of policies
            return webhook.conditions.hold(scope)
        except ConditionError as error:
            gvr = view.asked.info.gvr
            raise forbidden(gvr.group, gvr.plural, view.attrs.name, str(error)) from None

    def _compile(self) -> Iterator[Webhook]:
        for each in self._kept.of(sorted(self._store.scan(self._gvr), key=lambda each: each.name)):
            yield from each


def _compile(stored: Stored) -> list[Webhook]:
    doc: Tree = stored.doc
    return [_webhook(stored.name, index, each) for index, each in enumerate(doc.get("webhooks") or ())]


def _webhook(configuration: str, index: int, doc: Tree) -> Webhook:
    name: str = doc.get("name") or ""
    return Webhook(
        f"{configuration}/{name}/{index}",
        name,
        doc,
        Match(doc, doc.get("rules") or (), empty_matches=False),
        MatchConditions(doc.get("matchConditions") or (), ignore_failures=doc.get("failurePolicy") == "Ignore"),
    )
