"""Views of the rbac.authorization.k8s.io group."""

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.machinery.meta import Object, View


class AggregationRule(View, frozen=True, gc=False):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(Object, frozen=True, gc=False, kw_only=True):
    """Rules are opaque documents: compared and copied whole."""

    rules: tuple[Doc, ...] | None = None
    aggregation_rule: AggregationRule | None = None


CLUSTER_ROLES = Resource(
    GVR("rbac.authorization.k8s.io", "v1", "clusterroles"), "ClusterRole", ClusterRole, namespaced=False
)
