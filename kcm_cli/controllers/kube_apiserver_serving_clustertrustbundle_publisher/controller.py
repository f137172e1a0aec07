"""kube-apiserver-serving-clustertrustbundle-publisher-controller: publishes the API servers' CA as a
ClusterTrustBundle.

It uses the newest served version of the API, and does nothing if the CA is unknown.

upstream: pkg/controller/certificates/clustertrustbundlepublisher
"""

from kcm_cli.api.certificates import CLUSTER_TRUST_BUNDLES, CLUSTER_TRUST_BUNDLES_ALPHA, ClusterTrustBundle
from kcm_cli.controllers.kube_apiserver_serving_clustertrustbundle_publisher.plan import SIGNER, plan
from kcm_cli.controllers.shared.root_ca import RELOAD_S, RootCA, root_ca_of
from kcm_cli.controllers.shared.sync_metrics import CodedSyncMetrics
from kcm_cli.engine.context import Common, ControllerContext
from kcm_cli.engine.controller import Controller, Keys, Periodic, Queue, Watch, starting
from kcm_cli.engine.worker import unhandled
from kcm_cli.runtime.informer import Scope

_KEY = SIGNER


def is_alpha(common: Common) -> bool:
    """Whether v1alpha1 is served and v1beta1 is not."""
    alpha = f"{CLUSTER_TRUST_BUNDLES_ALPHA.api_version}/{CLUSTER_TRUST_BUNDLES_ALPHA.plural}"
    beta = f"{CLUSTER_TRUST_BUNDLES.api_version}/{CLUSTER_TRUST_BUNDLES.plural}"
    return alpha in common.served and beta not in common.served


class Publisher:
    """The only key is the signer's name."""

    def __init__(self, context: ControllerContext) -> None:
        self._ca = RootCA(context)
        self._resource = CLUSTER_TRUST_BUNDLES_ALPHA if is_alpha(context) else CLUSTER_TRUST_BUNDLES
        self._executor = context.executor()
        self._metrics = CodedSyncMetrics(context.metrics, context.clock, "clustertrustbundle_publisher", "the bundle")
        self._bundles = context.cache(self._resource).store
        (self._queue,) = context.queues
        self._queue.add(_KEY)

    async def sync(self, key: str) -> None:
        with self._metrics.measured():
            ca = self._ca.pem.decode(errors="replace")
            outcome = await self._executor.run(plan(self._resource, self._bundles, ca))
            if outcome.error is not None:
                raise outcome.error

    async def reload(self) -> None:
        """Queue the key if the CA has changed."""
        if self._ca.reload():
            self._queue.add(_KEY)


def the_signer(publisher: Publisher, bundle: ClusterTrustBundle) -> Keys:
    """The only key, for every bundle."""
    return (_KEY,)


_OF_SIGNER = Scope(field_selector=f"spec.signerName={SIGNER}")
CONTROLLER = Controller(
    Publisher,
    Queue(
        "ca_cert_publisher_cluster_trust_bundles",
        watches=(
            Watch(CLUSTER_TRUST_BUNDLES, the_signer, scope=_OF_SIGNER, when=lambda common: not is_alpha(common)),
            Watch(CLUSTER_TRUST_BUNDLES_ALPHA, the_signer, scope=_OF_SIGNER, when=is_alpha),
        ),
        sync=Publisher.sync,
        failures=unhandled('syncing "{key}" failed: {error}'),
    ),
    passes=(Periodic(Publisher.reload, pause_s=lambda publisher: RELOAD_S, delayed=True),),
    enabled=lambda context: bool(root_ca_of(context)),
    announces=starting("ClusterTrustBundle CA cert publisher controller"),
)
