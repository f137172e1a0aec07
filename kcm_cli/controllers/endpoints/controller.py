"""endpoints-controller: keeps the Endpoints of each Service with a selector equal to its pods.

Endpoints of a Service that is gone are deleted, also those that were left behind while nobody watched; Endpoints
that carry a leader's record belong to no Service and stay.

upstream: pkg/controller/endpoint
"""

from dataclasses import dataclass

from kcm_cli.api.core import PODS, SERVICES, Service
from kcm_cli.api.endpoints import ENDPOINTS
from kcm_cli.api.resource import Undecodable
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpoints.plan import plan
from kcm_cli.controllers.endpoints.snapshot import Member, Snapshot
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.pod_services import PodServices
from kcm_cli.engine.resync import Together
from kcm_cli.engine.retry import RetryPolicy
from kcm_cli.engine.worker import until_synced
from kcm_cli.machinery.meta import split_key
from kcm_cli.planning.actions import Plan, Stage
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.trigger_time import Seen, trigger_time
from kcm_cli.rest.errors import NotFound, namespace_terminating

MAX_RETRIES = 15
LEADER = "control-plane.alpha.kubernetes.io/leader"


def build(context: ControllerContext) -> Runnable:
    controller = EndpointsController(context)
    worker = context.worker(
        controller.queue,
        controller.sync,
        count=context.config(EndpointsConfig).concurrent_syncs,
        waits_for=controller.informers,
        retry=RetryPolicy(MAX_RETRIES),
        own=controller.own,
    )
    return Together((worker, Leftovers(controller)))


class EndpointsController:
    """Keys are Services."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._executor = context.executor()
        self._seen: dict[str, Seen] = {}
        self._memos: dict[str, Memo[Member]] = {}
        self.queue = context.queue("endpoint")
        self._services = context.informers.get(SERVICES)
        self._pods = context.informers.get(PODS)
        self._endpoints = context.informers.get(ENDPOINTS)
        self.informers = (self._services, self._pods, self._endpoints)
        self.own = context.own_writes(self._endpoints)
        self._services.listen(
            on_add=self._enqueue,
            on_update=lambda old, new: self._enqueue(new),
            on_delete=self._enqueue,
            on_unknown_delete=self._enqueue,
        )
        batch_s = context.config(EndpointsConfig).updates_batch_period_s
        self._selected = PodServices(self._services, self._pods, lambda key: self.queue.add_after(key, batch_s))
        self._endpoints.listen(on_delete=lambda endpoints: self.queue.add(endpoints.key))

    async def sync(self, key: str) -> None:
        service = self._services.store.get(key)
        if service is None:
            if not self._services.store.is_unseen(key):
                await self._delete(key)
            return
        if service.spec.type == "ExternalName" or service.spec.selector is None:
            return
        pods = tuple(self._selected.pods_of(service))
        time, self._seen[key] = trigger_time(self._seen.get(key), service, pods)
        memo = self._memos.setdefault(key, Memo())
        write = plan(Snapshot(service, pods, self._endpoints.store.get(key), time, memo))
        if write is None:
            return
        outcome = await self._executor.run(Plan((Stage((write,)),)))
        if outcome.error is not None and not namespace_terminating(outcome.error):
            raise outcome.error

    def leftovers(self) -> None:
        """Look at all Endpoints, in case their Services went while nobody watched."""
        for endpoints in self._endpoints.store.list():
            if LEADER not in endpoints.annotations:
                self.queue.add(endpoints.key)

    async def _delete(self, key: str) -> None:
        """The Service is gone: so are its Endpoints, whether the cache shows them or not."""
        namespace, name = split_key(key)
        try:
            await self._client.delete(ENDPOINTS, namespace, name)
        except NotFound:
            pass  # that is what was wanted
        self._seen.pop(key, None)
        self._memos.pop(key, None)

    def _enqueue(self, service: Service | Undecodable) -> None:
        self.queue.add(service.key)


@dataclass(frozen=True, slots=True)
class Leftovers:
    """Once, when the caches are full: have all Endpoints looked at."""

    controller: EndpointsController

    async def run(self) -> None:
        await until_synced(self.controller.informers)
        self.controller.leftovers()
