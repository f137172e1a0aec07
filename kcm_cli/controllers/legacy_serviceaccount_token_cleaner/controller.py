"""legacy-serviceaccount-token-cleaner-controller: deletes generated token Secrets of ServiceAccounts that are not used.

It runs once a day. A token is deleted only after it was marked as invalid, and not used, for a whole period. Pods are
listed from the API server, and only in namespaces with such tokens.

upstream: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go
"""

import logging
from datetime import datetime

from kcm_cli.api.core import CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS, Secret
from kcm_cli.api.well_known import ACCOUNT_TOKEN
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner import plan
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.config import LegacyTokenCleanerConfig
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.plan import Limits
from kcm_cli.controllers.legacy_serviceaccount_token_cleaner.pod_secrets import POD_SECRETS, secrets_of
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Periodic, Watch, starting
from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery.kref import kobj
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope

log = logging.getLogger(__name__)

PERIOD_S = 24 * 3600.0
SYSTEM = "kube-system"


class TokenCleaner:
    """Checks all token Secrets in one pass."""

    def __init__(self, context: ControllerContext) -> None:
        """Raises StartError."""
        period_s = context.config(LegacyTokenCleanerConfig).clean_up_period_s
        if period_s <= 0:
            flag = "--legacy-service-account-token-clean-up-period"
            raise StartError(f"{flag} must be greater than 0, but got {period_s}s")
        self._client, self._clock = context.client, context.clock
        self._caches = context.informers
        self._period_s = period_s
        self._accounts = context.cache(SERVICE_ACCOUNTS)
        self._secrets = context.cache(SECRETS)

    async def clean(self) -> None:
        """Run one pass. Failed writes are left to the next pass; raises an error that stops the pass."""
        now = self._clock.now()
        tracking = await self._client.get(CONFIG_MAPS, SYSTEM, plan.TRACKING)
        limit = plan.limits(tracking, now, self._period_s)
        if limit is None:
            return
        by_namespace: dict[str, list[Secret]] = {}
        for secret in self._secrets.store:
            if self._is_candidate(secret, limit):
                by_namespace.setdefault(secret.namespace, []).append(secret)
        for namespace, secrets in by_namespace.items():
            await self._clean_namespace(namespace, secrets, limit, now)

    def _is_candidate(self, secret: Secret, limit: Limits) -> bool:
        try:
            unused = plan.is_unused(secret, limit)
        except plan.InvalidDate as error:
            log.error("Parsing lastUsed time", extra={"fields": {"secret": kobj(secret), "err": str(error)}})
            return False
        return unused and plan.was_generated(secret, self._accounts.store.get(plan.account_of(secret)))

    async def _clean_namespace(self, namespace: str, secrets: list[Secret], limit: Limits, now: datetime) -> None:
        try:
            pods = await self._caches.list_now(POD_SECRETS, namespace)
        except RequestError as error:
            fields = {"namespace": namespace, "err": str(error)}
            log.error("Resolving mounted secrets", extra={"fields": fields})
            return
        in_use = {name for pod in pods.items for name in secrets_of(pod)}
        for secret in secrets:
            if secret.name not in in_use:
                await self._end(secret, limit, now)

    async def _end(self, secret: Secret, limit: Limits, now: datetime) -> None:
        action = plan.plan(secret, limit, now)
        if action is None:
            return
        try:
            await writes.send(self._client, action)
        except (NotFound, Conflict):
            return  # gone, another one of this name, or used since
        except RequestError as error:
            fields = {"secret": kobj(secret), "err": str(error)}
            log.error("Deleting legacy service account token", extra={"fields": fields})


CONTROLLER = Controller(
    TokenCleaner,
    passes=(Periodic(TokenCleaner.clean, pause_s=lambda cleaner: PERIOD_S),),
    reads=(SERVICE_ACCOUNTS, Watch(SECRETS, scope=Scope(field_selector=f"type={ACCOUNT_TOKEN}"))),
    announces=starting("legacy service account token cleaner controller"),
)
