"""The contents of the root CA's ConfigMap, and the write that is needed."""

from kcm_cli.api.core import CONFIG_MAPS, ConfigMap
from kcm_cli.api.well_known import ROOT_CA
from kcm_cli.machinery.codec import Doc
from kcm_cli.planning.actions import Create, Update

KEY = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


def plan(namespace: str, found: ConfigMap | None, root_ca: str) -> Create | Update | None:
    """Create or correct the ConfigMap of a namespace; None if it is right. Any description is accepted."""
    data: Doc = {KEY: root_ca}
    if found is None:
        metadata: Doc = {"name": ROOT_CA, "namespace": namespace, "annotations": {DESCRIPTION: TEXT}}
        body: Doc = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        return Create(CONFIG_MAPS, namespace, body, reason="namespace lacks the root CA")
    if found.data == data and found.annotations.get(DESCRIPTION):
        return None
    annotations = {**found.annotations, DESCRIPTION: TEXT}
    changes = {("data",): data, ("metadata", "annotations"): annotations}
    return Update(CONFIG_MAPS, found, changes, reason="root CA differs")
