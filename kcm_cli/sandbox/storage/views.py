"""The drivers of nodes, as the simulated storage driver reads them."""

import msgspec

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object


class CsiNode(Object, frozen=True, gc=False, kw_only=True):
    """Which drivers a node has."""

    spec: Doc = msgspec.field(default_factory=dict)


CSI_NODES = Resource(GVR("storage.k8s.io", "v1", "csinodes"), "CSINode", CsiNode, False)
