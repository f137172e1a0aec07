"""root-ca-certificate-publisher-controller: the cluster's CA as a ConfigMap in every namespace.

Only ConfigMaps of that name are watched: the others, however many, cost nothing.

upstream: pkg/controller/certificates/rootcacertpublisher/publisher.go
"""

from kcm_cli.api.core import CONFIG_MAPS, NAMESPACES, ConfigMap, Namespace
from kcm_cli.controllers.root_ca_certificate_publisher.metrics import SyncMetrics
from kcm_cli.controllers.root_ca_certificate_publisher.plan import NAME, repairs, wanted
from kcm_cli.controllers.shared.root_ca import root_ca_of
from kcm_cli.engine import writes
from kcm_cli.engine.context import ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Queue, Watch, only
from kcm_cli.planning.actions import Update
from kcm_cli.rest.errors import ApiError, NotFound
from kcm_cli.runtime.informer import Scope


class RootCAPublisher:
    """Keys are names of namespaces."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._root_ca = root_ca_of(context).decode(errors="replace")
        self._metrics = SyncMetrics(context.metrics)
        self._config_maps = context.cache(CONFIG_MAPS).store

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
        found = self._config_maps.get(f"{namespace}/{NAME}")
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


def is_active(namespace: Namespace) -> bool:
    """Whether it is not on its way out."""
    return namespace.status.phase == "Active"


def namespace_of(publisher: RootCAPublisher, found: ConfigMap) -> Keys:
    """The namespace of a ConfigMap that was changed."""
    return (found.namespace,)


def namespace_of_changed(publisher: RootCAPublisher, old: ConfigMap, new: ConfigMap) -> Keys:
    """The same."""
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
                scope=Scope(field_selector=f"metadata.name={NAME}"),
            ),
        ),
        sync=RootCAPublisher.sync,
    ),
)
