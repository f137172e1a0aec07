"""The fields of pods for field selectors. A decoder reads only these, since kubelets and the scheduler select all pods
by them.

upstream: pkg/registry/core/pod/strategy.go#ToSelectableFields
"""

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.store import Stored


class _PodSpec(msgspec.Struct, rename="camel", gc=False, frozen=True):
    node_name: str = ""
    restart_policy: str = ""
    scheduler_name: str = ""
    service_account_name: str = ""
    host_network: bool = False


class _PodIP(msgspec.Struct, gc=False):
    ip: str = ""


class _PodStatus(msgspec.Struct, gc=False, frozen=True):
    phase: str = ""
    podIPs: tuple[_PodIP, ...] | None = None
    nominatedNodeName: str = ""


class _Pod(msgspec.Struct, gc=False):
    spec: _PodSpec = _PodSpec()
    status: _PodStatus = _PodStatus()


def _pod_values(stored: Stored) -> dict[str, str]:
    pod = codec.decode(stored.data, _Pod)
    ips = pod.status.podIPs
    return {
        "metadata.name": stored.name,
        "metadata.namespace": stored.namespace,
        "spec.nodeName": pod.spec.node_name,
        "spec.restartPolicy": pod.spec.restart_policy,
        "spec.schedulerName": pod.spec.scheduler_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "spec.hostNetwork": "true" if pod.spec.host_network else "false",
        "status.phase": pod.status.phase,
        "status.podIP": ips[0].ip if ips else "",
        "status.nominatedNodeName": pod.status.nominatedNodeName,
    }


_FIELDS = (
    *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
    *("spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"),
)
SELECTABLE = Selectable(dict.fromkeys(_FIELDS, ""), aliases={"spec.host": "spec.nodeName"}, values=_pod_values)
