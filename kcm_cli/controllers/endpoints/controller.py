"""endpoints-controller: keeps the Endpoints of each Service with a selector in line with its pods.

The Endpoints of deleted Services are deleted, including those whose Service was deleted while no manager ran. Endpoints
with a leader election record belong to no Service, and are kept.

upstream: pkg/controller/endpoint
"""

import logging
from contextlib import suppress

from kcm_cli.api.core import PODS, SERVICES, Service
from kcm_cli.api.endpoints import ENDPOINTS, Endpoints
from kcm_cli.api.well_known import LEADER
from kcm_cli.component.logs import V2
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpoints.plan import Member, Served, Snapshot, new_memo, plan
from kcm_cli.controllers.shared.pod_services import PodServices
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, own_key, starting
from kcm_cli.engine.worker import Failures, until_synced
from kcm_cli.machinery.meta import split_key
from kcm_cli.planning.actions import Stage
from kcm_cli.planning.endpoints.memo import Memo
from kcm_cli.planning.endpoints.ports import PodPorts
from kcm_cli.planning.endpoints.trigger_time import Seen, trigger_time
from kcm_cli.rest.errors import NotFound, namespace_terminating

MAX_RETRIES = 15


class EndpointsController:
    """Keys are Services."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._executor = context.executor()
        self._seen: dict[str, Seen] = {}
        self._memos: dict[str, Memo[Member, PodPorts[Served]]] = {}
        (self._queue,) = context.queues
        self._services = context.cache(SERVICES)
        self._pods = context.cache(PODS)
        self._endpoints = context.cache(ENDPOINTS)
        self.selected = PodServices(self._services, self._pods)

    async def sync(self, key: str) -> None:
        service = self._services.store.get(key)
        if service is None:
            if not self._services.store.is_unseen(key):
                await self._delete(key)
            return
        if service.spec.type == "ExternalName" or service.spec.selector is None:
            self._memos.pop(key, None)
            return
        await self.selected.prepare(service)
        write = plan(self._read(key, service))
        if write is None:
            return
        outcome = await self._executor.run((Stage((write,)),))
        if outcome.error is not None and not namespace_terminating(outcome.error):
            raise outcome.error

    def _read(self, key: str, service: Service) -> Snapshot:
        pods = tuple(self.selected.pods_of(service))
        time, self._seen[key] = trigger_time(self._seen.get(key), service, pods)
        memo = self._memos.setdefault(key, new_memo())
        return Snapshot(service, pods, self._endpoints.store.get(key), time, memo)

    async def leftovers(self) -> None:
        """Queue all Endpoints once the caches have synced, since their Services may have been deleted while no manager
        ran."""
        await until_synced((self._services, self._pods, self._endpoints))
        for endpoints in self._endpoints.store.list():
            if LEADER not in endpoints.annotations:
                self._queue.add(endpoints.key)

    async def _delete(self, key: str) -> None:
        """Delete the Endpoints of a deleted Service, whether or not the cache has them; if it has, no others of the
        name, which may belong to a new Service. That one is looked for first: the cache of Services may be behind."""
        self._seen.pop(key, None)
        self._memos.pop(key, None)
        namespace, name = split_key(key)
        known = self._endpoints.store.get(key)
        if await self._client.find(SERVICES, namespace, name, metadata_only=True) is not None:
            return  # its event will queue the key
        uid = known.uid if known is not None else ""
        with suppress(NotFound):  # deleted already
            await self._client.delete(ENDPOINTS, namespace, name, uid=uid, reason="service is gone")

    def lost(self, endpoints: Endpoints) -> Keys:
        """The key of deleted Endpoints that are to be created again. Those without a Service are their user's, who may
        be replacing them."""
        return (endpoints.key,) if self._services.store.get(endpoints.key) is not None else ()


CONTROLLER = Controller(
    EndpointsController,
    Queue(
        "endpoint",
        Watch(SERVICES, own_key, unknown_deleted=own_key),
        watches=(
            Watch(
                PODS,
                PodServices.services_of,
                updated=PodServices.services_of_changed,
                after=lambda context: context.config(EndpointsConfig).updates_batch_period_s,
            ),
            Watch(ENDPOINTS, deleted=EndpointsController.lost),
        ),
        sync=EndpointsController.sync,
        failures=Failures(
            retried="Error syncing endpoints, retrying",
            level=V2,
            dropped="Dropping service out of the queue",
            dropped_level=logging.INFO,
            key="service",
            ref=True,
        ),
        workers=EndpointsConfig,
        retries=MAX_RETRIES,
        writes=(ENDPOINTS,),
    ),
    prepare=EndpointsController.leftovers,
    announces=starting("endpoint controller"),
)
