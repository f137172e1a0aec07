"""serviceaccount-token-controller: fills in token Secrets, and deletes those whose ServiceAccount was deleted.

It starts before all other controllers, with the manager's own credentials: with --use-service-account-credentials the
others need its tokens. Only Secrets of the token type are watched.

upstream: pkg/controller/serviceaccount/tokens_controller.go
"""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from types import MappingProxyType

import msgspec

from kcm_cli.api.core import SECRETS, SERVICE_ACCOUNTS, ObjectReference, Secret, ServiceAccount
from kcm_cli.api.well_known import ACCOUNT_NAME, ACCOUNT_TOKEN, ACCOUNT_UID
from kcm_cli.component.logs import V2, V4
from kcm_cli.component.service_account_config import ServiceAccountTokenConfig
from kcm_cli.controllers.serviceaccount_token import plan
from kcm_cli.controllers.serviceaccount_token.tokens import LegacyTokenSigner
from kcm_cli.controllers.shared.root_ca import RELOAD_S, RootCA
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.engine.worker import Failures
from kcm_cli.machinery import codec
from kcm_cli.machinery.formats import base64_text
from kcm_cli.machinery.kref import KRef, kobj
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.planning.actions import Path as FieldPath
from kcm_cli.planning.actions import Update, Value
from kcm_cli.rest.errors import Conflict, NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.store import NAMESPACE
from kcm_cli.runtime.turns import in_turns

log = logging.getLogger(__name__)

MAX_RETRIES = 10
AGAIN_S = 60.0
"""When to look again at a token whose account the cache does not show, and perhaps never will: it may be gone before
the cache is filled anew, without any event."""
QUEUE = "serviceaccount_tokens_service"


class TokenController:
    """Keys have the data that is needed about deleted objects: namespace, name, uid and, for Secrets, account and its
    uid."""

    def __init__(self, context: ControllerContext) -> None:
        """Raises StartError."""
        self._client = context.client
        self._signer = LegacyTokenSigner.from_file(context.config(ServiceAccountTokenConfig).service_account_key_file)
        self._root_ca = RootCA(context)
        _, self._secret_queue = context.queues
        self._accounts = context.cache(SERVICE_ACCOUNTS)
        self._secrets = context.cache(SECRETS)

    async def sync_account(self, key: str) -> None:
        """Delete the tokens of a deleted account."""
        namespace, name, uid = codec.decode(key.encode(), tuple[str, str, str])
        if self._known(namespace, name, uid) is not None:
            return
        deleted = ServiceAccount(metadata=ObjectMeta(name=name, namespace=namespace, uid=uid))
        failed: RequestError | None = None
        for secret in self._secrets.store.by_index(NAMESPACE, namespace):
            if plan.belongs_to(secret, deleted):
                try:
                    if secret.annotations.get(ACCOUNT_UID) or await self._account_of(namespace, name, "") is None:
                        await self._delete(secret)
                except RequestError as error:
                    fields = {"namespace": namespace, "serviceaccount": name, "err": str(error)}
                    log.error("Error deleting serviceaccount tokens", extra={"fields": fields})
                    failed = error
        if failed is not None:
            raise failed

    async def sync_secret(self, key: str) -> float | None:
        """Fill in a token Secret, or delete it if its account was deleted. For a deleted Secret, remove the account's
        reference."""
        namespace, name, uid, account_name, account_uid = codec.decode(key.encode(), tuple[str, str, str, str, str])
        if not account_name:
            return None
        secret = self._secrets.store.get(f"{namespace}/{name}")
        if secret is None or secret.uid != uid:
            if self._known(namespace, account_name, account_uid) is not None:
                with _logged("Removing secret reference"):
                    await self._forget(namespace, account_name, account_uid, name)
            return None
        if key not in self.secret_key(secret):
            return None  # it is of another account now, which its event has queued
        with _logged("Getting service account"):
            account = await self._account_of(namespace, account_name, account_uid)
        about = {"secret": kobj(secret), "serviceAccount": KRef(account_name, namespace)}
        if account is None:
            with _logged("Deleting serviceaccount token", about):
                await self._delete(secret)
            return None
        with _logged("Populating serviceaccount token", about):
            await self._fill(account, secret)
        return None if self._known(namespace, account_name, account_uid) is not None else AGAIN_S

    def _known(self, namespace: str, name: str, uid: str) -> ServiceAccount | None:
        account = self._accounts.store.get(f"{namespace}/{name}")
        return account if account is not None and uid in ("", account.uid) else None

    async def _account_of(self, namespace: str, name: str, uid: str) -> ServiceAccount | None:
        """The account from the cache or the API server, so that nothing is deleted because of a stale cache. Without a
        uid it is the one that has the name now."""
        known = self._known(namespace, name, uid)
        if known is not None and uid:
            return known
        found = await self._client.find(SERVICE_ACCOUNTS, namespace, name)
        return found if found is not None and uid in ("", found.uid) else None

    async def _delete(self, secret: Secret) -> None:
        version = secret.metadata.resource_version
        with suppress(NotFound, Conflict):  # deleted, recreated, or of another account now: its event queues the key
            await self._client.delete(
                SECRETS,
                secret.namespace,
                secret.name,
                uid=secret.uid,
                resource_version=version,
                reason="service account is gone",
            )

    async def _fill(self, account: ServiceAccount, cached: Secret) -> None:
        if not plan.plan(cached, self._root_ca.pem):
            return
        try:
            live = await self._client.get(SECRETS, cached.namespace, cached.name)
            if live.metadata.resource_version != cached.metadata.resource_version:
                fields = {"secret": kobj(live)}
                log.log(V2, "Secret is not up to date, skipping token population", extra={"fields": fields})
                return  # the event of its update will queue the key
            changes = self._changes(account, live)
            if changes:
                await writes.send(self._client, Update(SECRETS, live, changes, reason="token is incomplete"))
        except (NotFound, Conflict):
            return  # deleted or changed: its event will queue the key

    def _changes(self, account: ServiceAccount, secret: Secret) -> dict[FieldPath, Value]:
        need = plan.plan(secret, self._root_ca.pem)
        if not need:
            return {}
        changes: dict[FieldPath, Value] = {}
        if plan.CA in need:
            changes[("data", plan.CA)] = base64_text(self._root_ca.pem)
        if plan.NAMESPACE in need:
            changes[("data", plan.NAMESPACE)] = base64_text(secret.namespace.encode())
        if plan.TOKEN in need:
            token = self._signer.legacy_token(
                namespace=secret.namespace, account=account.name, uid=account.uid, secret=secret.name
            )
            changes[("data", plan.TOKEN)] = base64_text(token.encode())
        changes[("metadata", "annotations", ACCOUNT_NAME)] = account.name
        changes[("metadata", "annotations", ACCOUNT_UID)] = account.uid
        return changes

    async def _forget(self, namespace: str, name: str, uid: str, secret: str) -> None:
        """Remove a Secret from its account's list."""

        def without(account: ServiceAccount) -> dict[FieldPath, Value]:
            if uid not in ("", account.uid) or not any(ref.name == secret for ref in account.secrets):
                return {}
            kept: list[ObjectReference] = [ref for ref in account.secrets if ref.name != secret]
            return {("secrets",): msgspec.to_builtins(kept)}

        with suppress(NotFound):
            account = await self._client.get(SERVICE_ACCOUNTS, namespace, name)
            await writes.retry_on_conflict(
                self._client,
                SERVICE_ACCOUNTS,
                account,
                without,
                retries=writes.Retries(10),
                reason=f"secret {secret} is gone",
            )

    async def reload(self) -> None:
        """Queue all Secrets if the CA has changed. Yields to the loop in between."""
        if self._root_ca.reload():
            async for secret in in_turns(self._secrets.store.list(), OBJECTS):
                for key in self.secret_key(secret):
                    self._secret_queue.add(key)

    def account_key(self, account: ServiceAccount) -> Keys:
        """The account's key."""
        return (_key(account.namespace, account.name, account.uid),)

    def secret_key(self, secret: Secret) -> tuple[str, ...]:
        """The token's key, with the account in its annotations."""
        if secret.type != ACCOUNT_TOKEN:
            return ()
        notes = secret.annotations
        account = (notes.get(ACCOUNT_NAME, ""), notes.get(ACCOUNT_UID, ""))
        return (_key(secret.namespace, secret.name, secret.uid, *account),)


@contextmanager
def _logged(message: str, fields: Mapping[str, object] = MappingProxyType({})) -> Iterator[None]:
    """Log a failed request under this message, which says what could not be done, and raise it."""
    try:
        yield
    except RequestError as error:
        log.error(message, extra={"fields": {**fields, "err": str(error)}})
        raise


FAILURES = Failures(retried="Token work item failed, will retry", level=V4, key="key")
"""What failed is logged where it fails."""


def _key(*parts: str) -> str:
    """A key in JSON, since annotations may contain any separator."""
    return codec.encode(parts).decode()


CONTROLLER = Controller(
    TokenController,
    (
        Queue(
            QUEUE,
            Watch(SERVICE_ACCOUNTS, TokenController.account_key),
            sync=TokenController.sync_account,
            failures=FAILURES,
            workers=ServiceAccountTokenConfig,
            retries=MAX_RETRIES,
        ),
        Queue(
            QUEUE,
            Watch(SECRETS, TokenController.secret_key, scope=Scope(field_selector=f"type={ACCOUNT_TOKEN}")),
            sync=TokenController.sync_secret,
            failures=FAILURES,
            workers=ServiceAccountTokenConfig,
            retries=MAX_RETRIES,
        ),
    ),
    passes=(Periodic(TokenController.reload, pause_s=lambda controller: RELOAD_S, delayed=True),),
    enabled=lambda context: bool(context.config(ServiceAccountTokenConfig).service_account_key_file),
)
