"""The limits of a twin, which every answer lists."""

from collections.abc import Iterator

from kcm_cli.component.version import BINARY, SERVERS, release_of
from kcm_cli.machinery.times import format_time
from kcm_cli.manager.config import Config
from kcm_cli.plan.kinds import KINDS
from kcm_cli.plan.losses import SERVICES
from kcm_cli.plan.observe import NAMESPACES
from kcm_cli.plan.problems import Key
from kcm_cli.plan.simulation import Simulation
from kcm_cli.plan.snapshot import Gap, Snapshot
from kcm_cli.plan.twin.pods import DEFAULTS
from kcm_cli.plan.twin.twin import lacking

_ALWAYS = (
    "webhooks, other operators, the cloud and autoscalers of nodes are absent",
    "times to start and to readiness are those that the cluster's own pods took",
    "programs do not run: what NetworkPolicies and Ingresses let through, and what RBAC allows, makes no difference",
    "load on autoscaled workloads stays what it was",
    "a new leader has lost its predecessor's memory: back-offs and stabilisation windows begin anew",
)
_OF_THE_SERVER: dict[Key, str] = {
    (SERVICES, "default", "kubernetes"): "Service default/kubernetes",
    **{(NAMESPACES, "", name): f"Namespace {name}" for name in ("kube-node-lease", "kube-public")},
}
"""Objects that an API server keeps. upstream: pkg/controlplane/controller/{kubernetesservice,systemnamespaces}"""
_ORDER = {one.key: number for number, one in enumerate(KINDS)}
_USUAL = {"secrets": "Secrets", "configmaps": "ConfigMaps", "custom": "custom resources"}
"""What is not read unless it is asked for."""


def not_modelled(snapshot: Snapshot, config: Config, outcome: Simulation) -> tuple[str, ...]:
    """One line for each limit, the specific ones first."""
    return (
        *_release(snapshot),
        *outcome.notes,
        *_restored(outcome),
        *_cut(snapshot),
        *_controllers(snapshot, config),
        *_ALWAYS,
        DEFAULTS,
    )


def _release(snapshot: Snapshot) -> Iterator[str]:
    found = release_of(snapshot.server_version)
    if found is not None and found not in SERVERS:
        permitted = " or ".join(f"v{one}" for one in SERVERS)
        yield (
            f"the API server is {snapshot.server_version}, and kcm is v{BINARY}, for API servers {permitted}: "
            "what is other in that release"
        )


def _restored(outcome: Simulation) -> Iterator[str]:
    for key, kind in _OF_THE_SERVER.items():
        if key in outcome.finals and outcome.finals[key] is None:
            yield f"the API server creates {kind} anew within a minute, which the plan does not show"


def _cut(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.torn:
        kinds = ", ".join(snapshot.torn)
        moment = format_time(snapshot.taken_at)
        yield f"the cut is torn: read later than {moment}, since the server no longer had that version: {kinds}"
    for gap in snapshot.gaps:
        if _is_unusual(gap):
            yield f"{gap.resource}: {gap.reason}"
    if snapshot.skipped:
        yield f"objects that cannot be read: {len(snapshot.skipped)} ({', '.join(sorted(set(snapshot.skipped)))})"
    if snapshot.redacted:
        yield "the snapshot has no values of env: those in manifests are taken for the present ones"


def _controllers(snapshot: Snapshot, config: Config) -> Iterator[str]:
    usual: dict[str, str] = {}
    for name, kinds in lacking(snapshot, config).items():
        if {*kinds} <= _USUAL.keys():
            usual[name] = kinds[0]
        else:
            yield f"not run, for want of {', '.join(kinds)}: {name}"
    if usual:
        read = ", ".join(words for kind, words in _USUAL.items() if kind in usual.values())
        yield f"not run, since they need what is not read ({read}): {', '.join(usual)}"


def _is_unusual(gap: Gap) -> bool:
    return gap.partial or gap.resource not in (*_USUAL, "events")


def unread(snapshot: Snapshot) -> tuple[str, ...]:
    """What should have been read and was not, what most plans depend on first."""
    gaps = [gap for gap in snapshot.gaps if _is_unusual(gap)]
    whole = {gap.resource for gap in gaps if not gap.partial}
    named = sorted(whole, key=lambda name: (_ORDER.get(name, len(_ORDER)), name))
    return (*(("objects of other namespaces",) if any(gap.partial for gap in gaps) else ()), *named)
