"""namespace-controller: deletes the content of a namespace that is being deleted, then finalizes it.

upstream: pkg/controller/namespace
"""

import logging

import msgspec

from kcm_cli.api.core import NAMESPACES, Namespace
from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.controllers.namespace.content import Content
from kcm_cli.controllers.namespace.plan import Remains, plan, status
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import After, Controller, Periodic, Queue, Watch, starting
from kcm_cli.engine.worker import Failures
from kcm_cli.planning.actions import Path, Value, edited
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

DELAY_S = 5.0
"""The delay before the content is deleted: all API servers have to notice the deletion first."""
RETRY_S, LONGEST_RETRY_S = 0.25, 60.0
"""The delay before the first retry, doubled each time. Not as upstream (5 ms): what remains is most often a pod whose
kubelet is about to remove it, and each retry is a pass over all kinds, and an error in the log."""
QPS_TIMES, BURST_TIMES = 20, 100
"""Of --kube-api-qps and -burst: a namespace is emptied kind by kind. Upstream: app/core.go."""
FINALIZER = "kubernetes"


class NamespaceController:
    """Keys are names of namespaces. Only namespaces that are being deleted are queued."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client.faster(QPS_TIMES, BURST_TIMES)
        self._clock = context.clock
        ordered = context.gates.enabled("OrderedNamespaceDeletion")
        self._content = Content(self._client, context.clock, self._exists, pods_first=ordered)
        (self._queue,) = context.queues
        self._namespaces = context.cache(NAMESPACES).store
        self.sync_period_s = context.config(NamespaceConfig).sync_period_s

    async def sync(self, key: str) -> float | None:
        if self._namespaces.get(key) is None:
            log.info("Namespace has been deleted", extra={"fields": {"namespace": key}})
            return None
        try:
            return await self._delete(await self._client.get(NAMESPACES, "", key))
        except NotFound:
            return None

    async def _delete(self, namespace: Namespace) -> float | None:
        if not namespace.deleting or not self._exists(namespace):  # the cache queues it when it shows it
            return None
        namespace = await writes.retry_on_conflict(
            self._client, NAMESPACES, namespace, _terminating, subresource="status", reason="namespace is being deleted"
        )
        if not namespace.spec.finalizers:
            return None
        remains = await self._content.delete(namespace)
        if not self._exists(namespace):
            return None
        namespace = await self._update_conditions(namespace, remains)
        again_s = plan(remains)
        if again_s is not None:
            return again_s
        await writes.retry_on_conflict(
            self._client, NAMESPACES, namespace, _finalized, subresource="finalize", reason="namespace is empty"
        )
        return None

    def _exists(self, namespace: Namespace) -> bool:
        """Whether the cache shows this namespace, and not another one of its name."""
        known = self._namespaces.get(namespace.name)
        return known is not None and known.uid == namespace.uid

    async def _update_conditions(self, namespace: Namespace, remains: Remains) -> Namespace:
        """Write the conditions. An error is logged only, so that an empty namespace can be finalized."""
        new = status(namespace.status.conditions, remains, self._clock.now())
        if new == namespace.status.conditions:
            return namespace
        changes: dict[Path, Value] = {("status", "conditions"): msgspec.to_builtins(new)}
        doc = edited(namespace, changes)
        try:
            return await self._client.update(NAMESPACES, "", namespace.name, doc, subresource="status")
        except RequestError as error:
            fields = {"namespace": namespace.name, "err": str(error)}
            log.error("Couldn't update status condition for namespace", extra={"fields": fields})
            return namespace

    def deleting(self, namespace: Namespace) -> tuple[After, ...]:
        """The namespace's name if it is being deleted, after a delay."""
        return (After(namespace.name, DELAY_S),) if namespace.deleting else ()

    async def resync(self) -> None:
        """Queue all namespaces that are being deleted."""
        for namespace in self._namespaces.list():
            for key, delay_s in self.deleting(namespace):
                self._queue.add_after(key, delay_s)


def _terminating(namespace: Namespace) -> dict[Path, Value]:
    if namespace.status.phase == "Terminating":
        return {}
    return {("status", "phase"): "Terminating"}


def _finalized(namespace: Namespace) -> dict[Path, Value]:
    if FINALIZER not in namespace.spec.finalizers:
        return {}
    return {("spec", "finalizers"): sorted(set(namespace.spec.finalizers) - {FINALIZER})}


CONTROLLER = Controller(
    NamespaceController,
    Queue(
        "namespace",
        Watch(NAMESPACES, changed=NamespaceController.deleting),
        sync=NamespaceController.sync,
        failures=Failures(retried="Deletion of namespace failed", key="namespace"),
        workers=NamespaceConfig,
        limiter=lambda context: RetryLimiter(base_s=RETRY_S, maximum_s=LONGEST_RETRY_S),
    ),
    passes=(Periodic(NamespaceController.resync, pause_s=lambda controller: controller.sync_period_s, delayed=True),),
    announces=starting("namespace controller"),
)
