"""What the root CA's ConfigMap should hold, and what has to be written for that."""

from collections.abc import Mapping

from kcm_cli.api.core import ConfigMap
from kcm_cli.planning.actions import Path, Value

NAME = "kube-root-ca.crt"
KEY = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
TEXT = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the "
    "internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of "
    "Kubernetes clusters."
)


def wanted(namespace: str, root_ca: str) -> dict[str, object]:
    """The ConfigMap as it is created."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": namespace, "annotations": {DESCRIPTION: TEXT}},
        "data": {KEY: root_ca},
    }


def repairs(found: ConfigMap, root_ca: str) -> Mapping[Path, Value]:
    """Changes of a ConfigMap that is not as it should be; none if it is. Any description will do."""
    data = {KEY: root_ca}
    if found.data == data and found.annotations.get(DESCRIPTION):
        return {}
    return {("data",): data, ("metadata", "annotations"): {**found.annotations, DESCRIPTION: TEXT}}
