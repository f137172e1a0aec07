"""serviceaccount-controller: every active namespace has its ``default`` service account.

upstream: pkg/controller/serviceaccount/serviceaccounts_controller.go
"""

from kcm_cli.api.core import NAMESPACES, SERVICE_ACCOUNTS, Namespace, ServiceAccount
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.rest.errors import AlreadyExists, ApiError

NAME = "default"


def build(context: ControllerContext) -> Runnable:
    controller = ServiceAccountController(context)
    return context.worker(controller.queue, controller.sync, count=1, waits_for=controller.informers)


class ServiceAccountController:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self.queue = context.queue("serviceaccount")
        self._namespaces = context.informers.get(NAMESPACES)
        self._accounts = context.informers.get(SERVICE_ACCOUNTS)
        self.informers = (self._namespaces, self._accounts)
        self._namespaces.listen(on_add=self._changed, on_update=lambda old, new: self._changed(new))
        self._accounts.listen(on_delete=self._account_deleted)

    async def sync(self, key: str) -> None:
        namespace = self._namespaces.store.get(key)
        if namespace is None or namespace.status.phase != "Active" or self._accounts.store.get(f"{key}/{NAME}"):
            return
        try:
            await self._client.create(SERVICE_ACCOUNTS, key, account(key))
        except AlreadyExists:
            return  # the cache is older than the account
        except ApiError as error:
            if not error.namespace_terminating:
                raise

    def _changed(self, namespace: Namespace) -> None:
        self.queue.add(namespace.name)

    def _account_deleted(self, account: ServiceAccount) -> None:
        self.queue.add(account.namespace)


def account(namespace: str) -> dict[str, object]:
    """The service account that pods of this namespace use if they name none."""
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME, "namespace": namespace}}
