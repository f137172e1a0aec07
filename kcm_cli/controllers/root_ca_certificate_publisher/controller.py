"""root-ca-certificate-publisher-controller: publishes the cluster's root CA as a ConfigMap in every namespace.

Only ConfigMaps with that name are watched.

upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go
"""

from kcm_cli.api.core import CONFIG_MAPS, NAMESPACES, ConfigMap, Namespace
from kcm_cli.api.well_known import ROOT_CA
from kcm_cli.controllers.root_ca_certificate_publisher.plan import plan
from kcm_cli.controllers.shared.root_ca import RELOAD_S, RootCA
from kcm_cli.controllers.shared.sync_metrics import CodedSyncMetrics
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, only, starting
from kcm_cli.engine.passes import OBJECTS
from kcm_cli.engine.worker import unhandled
from kcm_cli.planning.actions import Create
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.runtime.informer import Scope
from kcm_cli.runtime.turns import in_turns

AGAIN_S = 60.0
"""When to look again whether the cache shows what was created. If not, it may be gone before the cache is filled anew,
without any event."""


class RootCAPublisher:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._root_ca = RootCA(context)
        self._metrics = CodedSyncMetrics(context.metrics, context.clock, "root_ca_cert_publisher", "a namespace")
        self._namespaces = context.cache(NAMESPACES).store
        self._config_maps = context.cache(CONFIG_MAPS).store
        (self._queue,) = context.queues

    async def sync(self, key: str) -> float | None:
        with self._metrics.measured():
            return await self._publish(key)

    async def _publish(self, namespace: str) -> float | None:
        if self._namespaces.get(namespace) is None and not self._namespaces.is_unseen(namespace):
            return None  # it is gone; if it is new, its event queues the key
        root_ca = self._root_ca.pem.decode(errors="replace")
        action = plan(namespace, self._config_maps.get(f"{namespace}/{ROOT_CA}"), root_ca)
        if action is None:
            return None
        try:
            await writes.send(self._client, action)
        except ApiError as error:
            if not (isinstance(action, Create) and (isinstance(error, NotFound) or error.namespace_terminating)):
                raise
            return None  # the namespace is gone, or will be
        return AGAIN_S if isinstance(action, Create) else None

    async def reload(self) -> None:
        """Queue all namespaces if the CA has changed. Yields to the loop in between."""
        if self._root_ca.reload():
            async for namespace in in_turns(self._namespaces.list(), OBJECTS):
                if is_active(namespace):
                    self._queue.add(namespace.name)


def is_active(namespace: Namespace) -> bool:
    """Whether the namespace is not being deleted."""
    return namespace.status.phase == "Active"


def namespace_of(publisher: RootCAPublisher, found: ConfigMap) -> Keys:
    """The namespace of a ConfigMap."""
    return (found.namespace,)


def namespace_of_changed(publisher: RootCAPublisher, old: ConfigMap, new: ConfigMap) -> Keys:
    """The namespace of a changed ConfigMap."""
    return (new.namespace,)


CONTROLLER = Controller(
    RootCAPublisher,
    Queue(
        "root_ca_cert_publisher",
        Watch(NAMESPACES, changed=only(is_active)),
        watches=(
            Watch(
                CONFIG_MAPS,
                updated=namespace_of_changed,
                deleted=namespace_of,
                scope=Scope(field_selector=f"metadata.name={ROOT_CA}"),
            ),
        ),
        sync=RootCAPublisher.sync,
        failures=unhandled('syncing "{key}" failed: {error}'),
    ),
    passes=(Periodic(RootCAPublisher.reload, pause_s=lambda publisher: RELOAD_S, delayed=True),),
    announces=starting("root CA cert publisher controller"),
)
