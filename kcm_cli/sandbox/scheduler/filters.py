"""Filters that check one node at a time. Each function returns None if its filter does not apply to the pod.

upstream: pkg/scheduler/framework/plugins
"""

from kcm_cli.api.core import NodeSelectorTerm, Taint
from kcm_cli.planning.node_affinity import NAME_FIELD, fits, required
from kcm_cli.planning.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated
from kcm_cli.sandbox.requests import CPU, MEMORY, STORAGE
from kcm_cli.sandbox.scheduler.node_info import NodeInfo
from kcm_cli.sandbox.scheduler.podinfo import PodInfo, conflict
from kcm_cli.sandbox.scheduler.verdict import Filter, Refusal

UNSCHEDULABLE_TAINT = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
_REPELLING = (NO_SCHEDULE, NO_EXECUTE)

UNSCHEDULABLE = Refusal("NodeUnschedulable", ("node(s) were unschedulable",))
TAINTED = Refusal("TaintToleration", ("node(s) had untolerated taint(s)",))
NOT_AFFINE = Refusal("NodeAffinity", ("node(s) didn't match Pod's node affinity/selector",))
TERMS_CONFLICT = Refusal("NodeAffinity", ("pod affinity terms conflict",))
PORTS_TAKEN = Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",), resolvable=True)
NOT_ABLE = Refusal("NodeDeclaredFeatures", ("node(s) didn't match Pod's required features",))
RESTART_ALL, RESTARTS_ALL = "RestartAllContainers", "RestartAllContainersOnContainerExits"
FIT = "NodeResourcesFit"
TOO_MANY = "Too many pods"
ELSEWHERE = "node(s) didn't satisfy plugin(s) [NodeAffinity]"


def node_affinity(info: PodInfo) -> Filter | None:
    """The filter for the node selector and the required node affinity."""
    spec = info.pod.spec
    if not spec.node_selector and required(spec.affinity) is None:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        return None if fits(node.name, node.labels, spec.node_selector, spec.affinity) else NOT_AFFINE

    return check


def named_nodes(info: PodInfo) -> frozenset[str] | None:
    """The nodes that the affinity names by field, as for pods of DaemonSets; None if it names none."""
    selector = required(info.pod.spec.affinity)
    if selector is None or not selector.node_selector_terms:
        return None
    found: frozenset[str] = frozenset()
    for term in selector.node_selector_terms:
        names = _named_by(term)
        if names is None:
            return None
        found |= names
    return found


def _named_by(term: NodeSelectorTerm) -> frozenset[str] | None:
    found: frozenset[str] | None = None
    for item in term.match_fields:
        if item.key == NAME_FIELD and item.operator == "In":
            names = frozenset(item.values)
            found = names if found is None else found & names
    return found


def ports(info: PodInfo) -> Filter | None:
    """The filter for host ports."""
    wanted = info.ports
    if not wanted:
        return None

    def check(node: NodeInfo) -> Refusal | None:
        taken = any(conflict(port, used) for port in wanted for used in node.ports)
        return PORTS_TAKEN if taken else None

    return check


def _lacking(node: NodeInfo, wanted: tuple[tuple[str, int], ...], offered: frozenset[str]) -> Refusal | None:
    requested, allocatable = node.requested, node.allocatable
    lacking = [n for n, amount in wanted if amount > allocatable.get(n, 0) - requested.get(n, 0)]
    if offered:
        lacking = [name for name in lacking if name not in offered or allocatable.get(name, 0)]
    full = len(node.pods) >= node.room
    if not lacking and not full:
        return None
    reasons = ([TOO_MANY] if full else []) + [f"Insufficient {name}" for name in lacking]
    hopeless = any(amount > allocatable.get(name, 0) for name, amount in wanted if name in lacking)
    return Refusal(FIT, tuple(reasons), resolvable=not hopeless)


def features(info: PodInfo) -> Filter | None:
    """The filter for features that not all kubelets have."""
    spec = info.pod.spec
    containers = (*spec.containers, *spec.init_containers)
    if not any(rule.action == RESTART_ALL for container in containers for rule in container.restart_policy_rules):
        return None

    def check(node: NodeInfo) -> Refusal | None:
        return None if RESTARTS_ALL in node.node.status.declared_features else NOT_ABLE

    return check


_FIRST = {CPU: 0, MEMORY: 1, STORAGE: 2}


def _ordered(wanted: dict[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(wanted.items(), key=lambda item: (_FIRST.get(item[0], 3), item[0])))


def basic(info: PodInfo, offered: frozenset[str] = frozenset()) -> Filter:
    """The filters that depend on the node only, in upstream's order: cordoned nodes and taints, affinity, ports, the
    number of pods, resources. Pods of one ``shape`` have the same results, as long as classes of devices provide the
    same resources (``offered``): nodes without these resources may have devices."""
    tolerations = info.pod.spec.tolerations
    tolerant = untolerated((UNSCHEDULABLE_TAINT,), tolerations, _REPELLING) is None
    wanted = _ordered({name: amount for name, amount in info.requests.items() if amount > 0})
    more = tuple(check for check in (node_affinity(info), ports(info)) if check is not None)

    def check(node: NodeInfo) -> Refusal | None:
        if node.repels:
            spec = node.node.spec
            if spec.unschedulable and not tolerant:
                return UNSCHEDULABLE
            if untolerated(spec.taints, tolerations, _REPELLING) is not None:
                return TAINTED
        for other in more:
            refusal = other(node)
            if refusal is not None:
                return refusal
        return _lacking(node, wanted, offered)

    return check
