"""Kubelet admission: whether a kubelet accepts a pod that was bound to its node.

upstream: pkg/kubelet/lifecycle/predicate.go, pkg/kubelet/sysctl/{allowlist,safe_sysctls}.go
"""

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from kcm_cli.api.core import ContainerStatus, ResourceRequirements
from kcm_cli.machinery.names import is_native_resource
from kcm_cli.machinery.quoting import quote
from kcm_cli.planning.node_affinity import fits
from kcm_cli.planning.tolerations import NO_EXECUTE, untolerated
from kcm_cli.sandbox import requests
from kcm_cli.sandbox.requests import CPU, MEMORY, PODS, STORAGE, Amounts
from kcm_cli.sandbox.scheduler.podinfo import Port, conflict, host_ports
from kcm_cli.sandbox.views import SimulatedContainer, SimulatedNode, SimulatedPod

_REASONS = {CPU: "OutOfcpu", MEMORY: "OutOfmemory", STORAGE: "OutOfephemeral-storage", PODS: "OutOfpods"}
_ORDER = (PODS, CPU, MEMORY, STORAGE)


_OS, _OS_LABEL = "linux", "kubernetes.io/os"
_SAFE_SYSCTLS = frozenset(
    (
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    )
)


C = TypeVar("C", SimulatedContainer, ContainerStatus)


class Rejection(msgspec.Struct, frozen=True):
    """Why a kubelet rejects a pod. A rejected pod fails."""

    reason: str
    message: str


class Occupancy:
    """The resources that the pods on one node use."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Amounts, tuple[Port, ...]]] = {}
        self._used: Amounts = {}

    def add(self, key: str, pod: SimulatedPod) -> None:
        self.remove(key)
        amounts = requests.of_pod(pod, held=False)
        self._pods[key] = (amounts, host_ports(pod))
        self._count(amounts, 1)

    def remove(self, key: str) -> None:
        known = self._pods.pop(key, None)
        if known is not None:
            self._count(known[0], -1)

    def rejects(self, pod: SimulatedPod, node: SimulatedNode) -> Rejection | None:
        """Return the first reason why the node cannot run this pod, or None."""
        unfit = _sysctl_rejection(pod) or _os_rejection(pod)
        if unfit is not None:
            return unfit
        room = requests.amounts(node.status.allocatable)
        asked = {**requests.of_pod(_without_devices(pod)), PODS: 1}
        used = {**self._used, PODS: len(self._pods)}
        lacking = _lacking(asked, used, room)
        if lacking is not None:
            return lacking
        spec = pod.spec
        if not fits(node.name, node.labels, spec.node_selector, spec.affinity):
            return _predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector")
        wanted = host_ports(pod)
        taken = (port for _, ports in self._pods.values() for port in ports) if wanted else ()
        if any(conflict(port, other) for other in taken for port in wanted):
            return _predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports")
        if untolerated(node.spec.taints, spec.tolerations, (NO_EXECUTE,)) is not None:
            return _predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate")
        return None

    def refuses_resize(self, key: str, pod: SimulatedPod, node: SimulatedNode) -> Rejection | None:
        """Return why a running pod cannot be resized now, or None if it can."""
        own, _ = self._pods.get(key, ({}, ()))
        used = {name: amount - own.get(name, 0) for name, amount in self._used.items()}
        return _lacking(
            requests.of_pod(_without_devices(pod), held=False), used, requests.amounts(node.status.allocatable)
        )

    def _count(self, amounts: Amounts, sign: int) -> None:
        for name, amount in amounts.items():
            self._used[name] = self._used.get(name, 0) + sign * amount


def _sysctl_rejection(pod: SimulatedPod) -> Rejection | None:
    """Reject sysctls that are not safe. No node allows unsafe ones."""
    context = pod.spec.security_context
    for sysctl in context.sysctls if context is not None else ():
        name = _dotted(sysctl.name)
        shared = ""
        if name.startswith("net."):
            shared = "net" if pod.spec.host_network else ""
        elif pod.spec.host_ipc:
            shared = "ipc"
        if name not in _SAFE_SYSCTLS:
            return Rejection("SysctlForbidden", f"forbidden sysctl: {quote(name)} not allowlisted")
        if shared:
            why = f"{quote(name)} not allowed with host {shared} enabled"
            return Rejection("SysctlForbidden", f"forbidden sysctl: {why}")
    return None


def _dotted(sysctl: str) -> str:
    """Return a sysctl's name with dots as separators. If its first separator is a slash, its dots are part of names."""
    first = min((sysctl.find(each) for each in "./" if each in sysctl), default=-1)
    if first < 0 or sysctl[first] == ".":
        return sysctl
    return sysctl.translate(str.maketrans("./", "/."))


def _os_rejection(pod: SimulatedPod) -> Rejection | None:
    if pod.labels.get(_OS_LABEL, _OS) != _OS:
        message = f"Failed to admit pod as the `{_OS_LABEL}` label doesn't match node label"
        return Rejection("PodOSSelectorNodeLabelDoesNotMatch", message)
    if pod.spec.os is not None and pod.spec.os.name != _OS:
        return Rejection("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS")
    return None


def _lacking(asked: Amounts, used: Amounts, room: Mapping[str, int]) -> Rejection | None:
    for name in _names(asked):
        amount = asked[name]
        if name not in room and not is_native_resource(name):
            continue  # the cluster's, not the node's
        if amount > 0 and amount > room.get(name, 0) - used.get(name, 0):
            counts = f"requested: {amount}, used: {used.get(name, 0)}, capacity: {room.get(name, 0)}"
            return Rejection(_REASONS.get(name, f"OutOf{name}"), f"Node didn't have enough resource: {name}, {counts}")
    return None


def _without_devices(pod: SimulatedPod) -> SimulatedPod:
    """Return the pod without the extended resources that were allocated as devices."""
    spec, status = pod.spec, pod.status
    named = status.extended_resource_claim_status
    if named is None:
        return pod
    given = {(one.container_name, one.resource_name) for one in named.request_mappings}

    def rest(item: C) -> C:
        asked = (item.resources.requests if item.resources is not None else None) or {}
        left = {name: amount for name, amount in asked.items() if (item.name, name) not in given}
        return replace(item, resources=ResourceRequirements(requests=left))

    def held(item: ContainerStatus) -> ContainerStatus:
        allocated = item.allocated_resources or {}
        left = {name: amount for name, amount in allocated.items() if (item.name, name) not in given}
        return replace(rest(item), allocated_resources=left)

    spec = replace(
        spec, containers=tuple(map(rest, spec.containers)), init_containers=tuple(map(rest, spec.init_containers))
    )
    status = replace(
        status,
        container_statuses=tuple(map(held, status.container_statuses)),
        init_container_statuses=tuple(map(held, status.init_container_statuses)),
    )
    return replace(pod, spec=spec, status=status)


def _names(asked: Amounts) -> Iterable[str]:
    yield from (name for name in _ORDER if name in asked)
    yield from sorted(name for name in asked if name not in _ORDER)


def _predicate(name: str, reason: str) -> Rejection:
    return Rejection(name, f"Predicate {name} failed: {reason}")
