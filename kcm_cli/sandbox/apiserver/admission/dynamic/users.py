"""Admission policies and webhooks together. Policies come before webhooks, in both rounds."""

from kcm_cli.sandbox.apiserver.admission.dynamic.calling import MutatingWebhooks, ValidatingWebhooks
from kcm_cli.sandbox.apiserver.admission.dynamic.mutating import MutatingPolicies
from kcm_cli.sandbox.apiserver.admission.dynamic.reviews import Reviewer
from kcm_cli.sandbox.apiserver.admission.dynamic.rounds import Rounds
from kcm_cli.sandbox.apiserver.admission.dynamic.validating import ValidatingPolicies
from kcm_cli.sandbox.apiserver.admission.dynamic.views import Versions
from kcm_cli.sandbox.apiserver.admission.dynamic.webhooks import MUTATING, VALIDATING, Webhooks
from kcm_cli.sandbox.apiserver.registry.catalog import Catalog
from kcm_cli.sandbox.apiserver.schema import Schemas
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes
from kcm_cli.sandbox.apiserver.unconverted import converted, one_request

_WEBHOOKS = frozenset(("MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"))


class UserDefined:
    """See the module. Writes that nothing matches take very little time. settings: what is off.
    Webhooks are left out if the reviewer cannot call any."""

    def __init__(
        self,
        store: Store,
        reviewer: Reviewer,
        authorizer: Authorizer,
        catalog: Catalog,
        schemas: Schemas,
        settings: Settings,
    ) -> None:
        disabled, policies = settings.disabled_plugins, settings.disabled_policies
        self.authorizer, self._disabled = authorizer, disabled if reviewer.possible else disabled | _WEBHOOKS
        versions = Versions(catalog)
        self._mutating_policies = MutatingPolicies(store, authorizer, catalog, versions, schemas, policies)
        self._mutating_webhooks = MutatingWebhooks(Webhooks(store, versions, authorizer, MUTATING), reviewer, schemas)
        self._policies = ValidatingPolicies(store, authorizer, catalog, versions, policies)
        self._webhooks = ValidatingWebhooks(Webhooks(store, versions, authorizer, VALIDATING), reviewer)

    def mutates(self, attrs: Attributes) -> bool:
        """Whether a mutating policy or webhook may match writes of this kind."""
        return self._policies_mutate(attrs) or self._webhooks_mutate(attrs)

    async def mutate(self, attrs: Attributes, rounds: Rounds) -> None:
        """Run mutating policies and webhooks. Raises ApiError."""
        if self._policies_mutate(attrs):
            self._mutating_policies.admit(attrs, rounds)
        if self._webhooks_mutate(attrs):
            await self._mutating_webhooks.admit(attrs, rounds)

    async def validate(self, attrs: Attributes) -> None:
        """Run validating policies and webhooks. Raises ApiError."""
        if "ValidatingAdmissionPolicy" not in self._disabled and self._policies.concern(attrs):
            await self._validate_by_policies(attrs)
        if "ValidatingAdmissionWebhook" not in self._disabled and self._webhooks.webhooks.concern(attrs):
            await self._webhooks.validate(attrs)

    async def _validate_by_policies(self, attrs: Attributes) -> None:
        before = len(attrs.warnings)

        def validate() -> None:
            del attrs.warnings[before:]
            self._policies.validate(attrs)

        with one_request():
            await converted(validate)

    def _policies_mutate(self, attrs: Attributes) -> bool:
        return "MutatingAdmissionPolicy" not in self._disabled and self._mutating_policies.concern(attrs)

    def _webhooks_mutate(self, attrs: Attributes) -> bool:
        return "MutatingAdmissionWebhook" not in self._disabled and self._mutating_webhooks.webhooks.concern(attrs)
