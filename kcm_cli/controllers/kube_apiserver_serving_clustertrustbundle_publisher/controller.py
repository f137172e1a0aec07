"""kube-apiserver-serving-clustertrustbundle-publisher-controller: the CA of the API servers as a ClusterTrustBundle.

It uses the newest version of the API that is served, and does nothing where the CA is not known.

upstream: pkg/controller/certificates/clustertrustbundlepublisher
"""

from kcm_cli.api.certificates import CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA, ClusterTrustBundle
from kcm_cli.api.resource import Resource
from kcm_cli.controllers.kube_apiserver_serving_clustertrustbundle_publisher.metrics import SyncMetrics
from kcm_cli.controllers.kube_apiserver_serving_clustertrustbundle_publisher.plan import SIGNER, plan
from kcm_cli.engine.context import ControllerContext, Runnable
from kcm_cli.engine.root_ca import root_ca_of
from kcm_cli.rest.errors import ApiError
from kcm_cli.runtime.informer import Scope

_KEY = SIGNER


def build(context: ControllerContext) -> Runnable | None:
    root_ca = root_ca_of(context)
    if not root_ca:
        return None
    publisher = Publisher(context, _resource(context.served), root_ca.decode(errors="replace"))
    return context.worker(publisher.queue, publisher.sync, count=1, waits_for=(publisher.bundles,))


def _resource(served: frozenset[str]) -> Resource[ClusterTrustBundle]:
    alpha = f"{CLUSTER_TRUST_BUNDLES_ALPHA.api_version}/{CLUSTER_TRUST_BUNDLES_ALPHA.plural}"
    beta = f"{CLUSTER_TRUST_BUNDLES.api_version}/{CLUSTER_TRUST_BUNDLES.plural}"
    return CLUSTER_TRUST_BUNDLES_ALPHA if alpha in served and beta not in served else CLUSTER_TRUST_BUNDLES


class Publisher:
    """There is one key: the signer."""

    def __init__(self, context: ControllerContext, resource: Resource[ClusterTrustBundle], ca: str) -> None:
        self._clock, self._resource, self._ca = context.clock, resource, ca
        self._executor = context.executor()
        self._metrics = SyncMetrics(context.metrics)
        self.queue = context.queue("ca_cert_publisher_cluster_trust_bundles")
        self.bundles = context.informers.get(resource, Scope(field_selector=f"spec.signerName={SIGNER}"))
        self.bundles.listen(
            on_add=self._changed, on_update=lambda old, new: self._changed(new), on_delete=self._changed
        )
        self.queue.add(_KEY)

    async def sync(self, key: str) -> None:
        started, code = self._clock.monotonic(), "200"
        outcome = await self._executor.run(plan(self._resource, self.bundles.store, self._ca))
        error = outcome.error
        if error is not None:
            code = str(error.status) if isinstance(error, ApiError) else "500"
        self._metrics.observe(code, self._clock.monotonic() - started)
        if error is not None:
            raise error

    def _changed(self, bundle: ClusterTrustBundle) -> None:
        self.queue.add(_KEY)
