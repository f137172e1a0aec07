"""Decides which nodes a daemon pod runs on, and adds the tolerations of daemon pods.

upstream: pkg/controller/daemon/daemon_controller.go#NodeShouldRunDaemonPod,
pkg/controller/daemon/util/daemonset_util.go#AddOrUpdateDaemonPodTolerations
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from kcm_cli.api.apps import DAEMON_SETS
from kcm_cli.api.core import Affinity, Node, Pod, Toleration
from kcm_cli.api.well_known import NOT_READY, UNREACHABLE
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import View, controller_of
from kcm_cli.planning.node_affinity import Terms, has_labels, node_named, required
from kcm_cli.planning.tolerations import NO_EXECUTE, NO_SCHEDULE, untolerated


class Fit(msgspec.Struct, frozen=True):
    """Whether a node should have a daemon pod (``runs``), and whether it may keep an existing one (``keeps``)."""

    runs: bool
    keeps: bool


NEVER = Fit(runs=False, keeps=False)
ALWAYS = Fit(runs=True, keeps=True)
ONLY_KEPT = Fit(runs=False, keeps=True)

_TOLERATED = (
    (NOT_READY, NO_EXECUTE),
    (UNREACHABLE, NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class _PodSpec(View, frozen=True):
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    host_network: bool = False


class Requirements(msgspec.Struct, frozen=True):
    """What a pod template requires of nodes. ``terms``: of its node affinity."""

    node_name: str = ""
    node_selector: Mapping[str, str] | None = None
    terms: Terms | None = None
    tolerations: tuple[Toleration, ...] = ()


def requirements_of(template: Doc) -> Requirements:
    """The template's requirements, with the tolerations that all daemon pods get. Raises codec.ShapeError."""
    own = codec.convert(template.get("spec") or {}, _PodSpec)
    added = (
        Toleration(key=key, operator="Exists", effect=effect)
        for key, effect in daemon_taints(host_network=own.host_network)
    )
    selector = required(own.affinity)
    terms = None if selector is None else Terms(selector)
    return Requirements(own.node_name, own.node_selector, terms, (*own.tolerations, *added))


def daemon_taints(*, host_network: bool) -> Iterable[tuple[str, str]]:
    """The (key, effect) of the taints that all daemon pods tolerate."""
    return (*_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if host_network else _TOLERATED


def tolerating(tolerations: Iterable[Doc], *, host_network: bool) -> list[Doc]:
    """The tolerations with those of daemon pods. An equal one is replaced in place."""
    result = list(tolerations)
    for key, effect in daemon_taints(host_network=host_network):
        added: Doc = {"key": key, "operator": "Exists", "effect": effect}
        same = [index for index, own in enumerate(result) if _means(own) == (key, "Exists", effect, "")]
        for index in same:
            result[index] = added
        if not same:
            result.append(added)
    return result


def fit(wanted: Requirements, node: Node, *, comparisons: bool = False) -> Fit:
    """Whether the node fits the requirements. ``comparisons``: gate TaintTolerationComparisonOperators."""
    if wanted.node_name and wanted.node_name != node.name:
        return NEVER
    if not has_labels(node.labels, wanted.node_selector):
        return NEVER
    if wanted.terms is not None and not wanted.terms.match(node.name, node.labels):
        return NEVER
    taints = node.spec.taints
    if not taints:
        return ALWAYS
    if untolerated(taints, wanted.tolerations, (NO_EXECUTE,), comparisons=comparisons) is not None:
        return NEVER
    if untolerated(taints, wanted.tolerations, (NO_SCHEDULE,), comparisons=comparisons) is not None:
        return ONLY_KEPT
    return ALWAYS


def same_to_daemons(old: Node, new: Node) -> bool:
    """Whether two versions of a node have the same labels and taints, which decide about daemon pods."""
    return old is new or (old.metadata.labels == new.metadata.labels and old.spec.taints == new.spec.taints)


def target_of(pod: Pod) -> str | None:
    """The node that a daemon pod is assigned to, or that its node affinity names; None without both."""
    return pod.spec.node_name or node_named(required(pod.spec.affinity))


def waits_for(pod: Pod) -> tuple[str, ...]:
    """Index: the node that a daemon pod is made for and not bound to yet. None of other pods."""
    if pod.spec.node_name:
        return ()
    ref, target = controller_of(pod), target_of(pod)
    return (target,) if ref is not None and ref.kind == DAEMON_SETS.kind and target is not None else ()


def by_node(pods: Iterable[Pod]) -> Mapping[str, Sequence[Pod]]:
    """The pods by ``target_of``."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        target = pod.spec.node_name or target_of(pod)
        if target is not None:
            found.setdefault(target, []).append(pod)
    return found


def _means(toleration: Doc) -> tuple[object, object, object, object]:
    return (
        toleration.get("key", ""),
        toleration.get("operator", ""),
        toleration.get("effect", ""),
        toleration.get("value", ""),
    )
