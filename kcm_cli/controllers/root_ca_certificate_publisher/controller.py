"""root-ca-certificate-publisher-controller: the cluster's CA as a ConfigMap in every namespace.

Only ConfigMaps of that name are watched: the others, however many, cost nothing.

upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go
"""

from kcm_cli.api.core import CONFIG_MAPS, NAMESPACES, ConfigMap, Namespace
from kcm_cli.controllers.root_ca_certificate_publisher.metrics import SyncMetrics
from kcm_cli.controllers.root_ca_certificate_publisher.plan import NAME, repairs, wanted
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.root_ca import root_ca_of
from kcm_cli.planning.actions import Update
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.runtime.informer import Scope


def build(context: ControllerContext) -> Runnable:
    controller = RootCAPublisher(context, root_ca_of(context).decode(errors="replace"))
    return context.worker(controller.queue, controller.sync, count=1, waits_for=(controller.config_maps,))


class RootCAPublisher:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext, root_ca: str) -> None:
        self._client = context.client
        self._clock = context.clock
        self._root_ca = root_ca
        self._metrics = SyncMetrics(context.metrics)
        self.queue = context.queue("root_ca_cert_publisher")
        self.config_maps = context.informers.get(CONFIG_MAPS, Scope(field_selector=f"metadata.name={NAME}"))
        self.config_maps.listen(on_update=lambda old, new: self._config_map(new), on_delete=self._config_map)
        namespaces = context.informers.get(NAMESPACES)
        namespaces.listen(on_add=self._namespace, on_update=lambda old, new: self._namespace(new))

    async def sync(self, key: str) -> None:
        started, code = self._clock.monotonic(), "500"  # of errors that no server has answered
        try:
            await self._publish(key)
            code = "200"
        except ApiError as error:
            code = str(error.status)
            raise
        finally:
            self._metrics.observe(code, self._clock.monotonic() - started)

    async def _publish(self, namespace: str) -> None:
        found = self.config_maps.store.get(f"{namespace}/{NAME}")
        if found is not None:
            changes = repairs(found, self._root_ca)
            if changes:
                await writes.update(self._client, Update(CONFIG_MAPS, found, changes))
            return
        try:
            await self._client.create(CONFIG_MAPS, namespace, wanted(namespace, self._root_ca))
        except NotFound:
            return  # the namespace is gone
        except ApiError as error:
            if not error.namespace_terminating:
                raise

    def _config_map(self, found: ConfigMap) -> None:
        self.queue.add(found.namespace)

    def _namespace(self, namespace: Namespace) -> None:
        if namespace.status.phase == "Active":
            self.queue.add(namespace.name)
