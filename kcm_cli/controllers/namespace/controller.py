"""namespace-controller: empties a namespace that is being deleted, then lets it go.

upstream: pkg/controller/namespace
"""

import logging

import msgspec

from kcm_cli.api.core import NAMESPACES, Namespace
from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.controllers.namespace.content import Content
from kcm_cli.controllers.namespace.plan import conditions, wait_s
from kcm_cli.controllers.namespace.snapshot import Remains
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.resync import with_resync
from kcm_cli.planning.actions import Path, Value
from kcm_cli.rest.errors import NotFound
from kcm_cli.rest.transport import RequestError
from kcm_cli.runtime.workqueue import RetryLimiter

log = logging.getLogger(__name__)

DELAY_S = 5.0
"""So long after a deletion its content is left alone: the API servers have to notice it first."""
LONGEST_RETRY_S = 60.0
QPS_TIMES, BURST_TIMES = 20, 100
"""Of --kube-api-qps and -burst: a namespace is emptied kind by kind. Upstream: app/core.go."""
FINALIZER = "kubernetes"


def build(context: ControllerContext) -> Runnable:
    config = context.config(NamespaceConfig)
    controller = NamespaceController(context)
    worker = context.worker(
        controller.queue, controller.sync, count=config.concurrent_syncs, waits_for=(controller.namespaces,)
    )
    return with_resync(worker, controller.namespaces, config.sync_period_s, controller.changed, context)


class NamespaceController:
    """Keys are names of namespaces; only those that are being deleted are queued."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client.faster(QPS_TIMES, BURST_TIMES)
        self._clock = context.clock
        ordered = context.gates.enabled("OrderedNamespaceDeletion")
        self._content = Content(self._client, context.clock, pods_first=ordered)
        self.queue = context.queue("namespace", RetryLimiter(maximum_s=LONGEST_RETRY_S))
        self.namespaces = context.informers.get(NAMESPACES)
        self.namespaces.listen(on_add=self.changed, on_update=lambda old, new: self.changed(new))

    async def sync(self, key: str) -> float | None:
        if self.namespaces.store.get(key) is None:
            return None
        try:
            return await self._delete(await self._client.get(NAMESPACES, "", key))
        except NotFound:
            return None

    async def _delete(self, namespace: Namespace) -> float | None:
        if not namespace.deleting:
            return None
        namespace = await writes.retry_on_conflict(
            self._client, NAMESPACES, namespace, _terminating, subresource="status"
        )
        if not namespace.spec.finalizers:
            return None
        remains = await self._content.delete(namespace)
        namespace = await self._tell(namespace, remains)
        if remains.content_errors or remains.discovery_error:
            raise ContentRemains("; ".join([*remains.content_errors, remains.discovery_error]))
        if remains.estimate_s:
            return wait_s(remains.estimate_s)
        await writes.retry_on_conflict(self._client, NAMESPACES, namespace, _finalized, subresource="finalize")
        return None

    async def _tell(self, namespace: Namespace, remains: Remains) -> Namespace:
        """Write the conditions; what cannot be told is no reason to keep an empty namespace."""
        new = conditions(namespace.status.conditions, remains, self._clock.now())
        if new == namespace.status.conditions:
            return namespace
        changes: dict[Path, Value] = {("status", "conditions"): msgspec.to_builtins(new)}
        doc = writes.edited(namespace, changes)
        try:
            return await self._client.update(NAMESPACES, "", namespace.name, doc, subresource="status")
        except RequestError as error:
            fields = {"namespace": namespace.name, "err": str(error)}
            log.warning("Could not write the conditions of a namespace", extra={"fields": fields})
            return namespace

    def changed(self, namespace: Namespace) -> None:
        if namespace.deleting:
            self.queue.add_after(namespace.name, DELAY_S)


class ContentRemains(Exception):
    """Something could not be deleted; the namespace's conditions say what."""

    reason = "ContentRemains"


def _terminating(namespace: Namespace) -> dict[Path, Value]:
    if namespace.status.phase == "Terminating" or not namespace.deleting:
        return {}
    return {("status", "phase"): "Terminating"}


def _finalized(namespace: Namespace) -> dict[Path, Value]:
    if FINALIZER not in namespace.spec.finalizers:
        return {}
    return {("spec", "finalizers"): sorted(set(namespace.spec.finalizers) - {FINALIZER})}
