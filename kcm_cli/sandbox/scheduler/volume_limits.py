"""The limits of volumes per driver and node, by CSINode.

upstream: pkg/scheduler/framework/plugins/nodevolumelimits
"""

from collections import Counter
from collections.abc import Iterable

from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo
from kcm_cli.sandbox.scheduler.stores import BY_NODE, Volumes
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal

PLUGIN = "NodeVolumeLimits"
TOO_MANY = Refusal(PLUGIN, ("node(s) exceed max volume count",), resolvable=True)
Handles = dict[tuple[str, str], str]
"""The drivers of volumes, by driver and handle."""


def limits_filter(info: PodInfo, volumes: Volumes) -> Filter | None:
    """The filter for nodes with room for the pod's volumes."""
    brought = _handles((info,), volumes)
    if not brought:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        limits = _limits(node.name, volumes)
        if not limits:
            return None
        attached = {**_attached(node.name, volumes), **_handles(node.pods.values(), volumes)}
        used = Counter(attached.values())
        new = Counter(driver for handle, driver in brought.items() if handle not in attached)
        full = any(name in limits and used[name] + count > limits[name] for name, count in new.items())
        return TOO_MANY if full else None

    return check


def _limits(node: str, volumes: Volumes) -> dict[str, int]:
    found = volumes.csi_nodes.get(node)
    limits: dict[str, int] = {}
    for driver in found.spec.drivers if found is not None else ():
        if driver.allocatable is not None and driver.allocatable.count is not None:
            limits[driver.name] = driver.allocatable.count
    return limits


def _handles(pods: Iterable[PodInfo], volumes: Volumes) -> Handles:
    """The CSI volumes that pods mount. One that is not provisioned yet counts by its claim."""
    found: Handles = {}
    for info in pods:
        for name in info.claims:
            claim = volumes.claims.get(f"{info.pod.namespace}/{name}")
            if claim is None:
                continue
            volume = volumes.volumes.get(claim.spec.volume_name) if claim.spec.volume_name else None
            if volume is not None:
                if volume.spec.csi is not None:
                    found[volume.spec.csi.driver, volume.spec.csi.volume_handle] = volume.spec.csi.driver
                continue
            class_ = volumes.classes.get(claim.spec.storage_class_name or "")
            if class_ is not None and class_.provisioner:
                found[class_.provisioner, claim.key] = class_.provisioner
    return found


def _attached(node: str, volumes: Volumes) -> Handles:
    """The volumes that are attached to a node."""
    found: Handles = {}
    for attachment in volumes.attachments.by_index(BY_NODE, node):
        volume = volumes.volumes.get(attachment.spec.source.persistent_volume_name or "")
        if volume is not None and volume.spec.csi is not None:
            found[volume.spec.csi.driver, volume.spec.csi.volume_handle] = volume.spec.csi.driver
    return found
