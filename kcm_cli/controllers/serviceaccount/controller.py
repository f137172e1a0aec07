"""serviceaccount-controller: creates the ``default`` service account of every active namespace.

upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go
"""

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS, ServiceAccount
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import Failures
from kcm_cli.rest.errors import AlreadyExists, ApiError

NAME = "default"
AGAIN_S = 60.0
"""When to look again whether the cache shows the account. If not, it may be gone before the cache is filled anew,
without any event."""


class ServiceAccountController:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._namespaces = context.cache(NAMESPACES)
        self._accounts = context.cache(SERVICE_ACCOUNTS)

    async def sync(self, key: str) -> float | None:
        namespace, accounts = self._namespaces.store.get(key), self._accounts.store
        if namespace is None or namespace.status.phase != "Active" or accounts.get(f"{key}/{NAME}"):
            return None
        if accounts.is_unseen(f"{key}/{NAME}"):
            return AGAIN_S  # it is there, and cannot be decoded
        try:
            await self._client.create(SERVICE_ACCOUNTS, key, account(key), reason="namespace has no default account")
        except AlreadyExists:
            pass  # the cache is older than the account
        except ApiError as error:
            if not error.namespace_terminating:
                raise
            return None
        return AGAIN_S


def account(namespace: str) -> dict[str, object]:
    """The body of the ServiceAccount that pods use by default."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}


def namespace_of(controller: ServiceAccountController, account: ServiceAccount) -> Keys:
    """The namespace of a deleted account."""
    return (account.namespace,)


CONTROLLER = Controller(
    ServiceAccountController,
    Queue(
        "serviceaccount",
        Watch(NAMESPACES, changed=own_key),
        watches=(Watch(SERVICE_ACCOUNTS, deleted=namespace_of),),
        sync=ServiceAccountController.sync,
        failures=Failures(retried="Service account work item failed", key="item"),
    ),
    announces=starting("service account controller"),
)
