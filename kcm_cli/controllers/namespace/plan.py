"""The conditions of a terminating namespace, and how long to wait for its content.

upstream: pkg/controller/namespace/deletion
"""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

import msgspec

from kcm_cli.api.core import Condition, Pod
from kcm_cli.machinery.errors import SyncError
from kcm_cli.machinery.times import format_time, parse_time
from kcm_cli.planning.conditions import updated
from kcm_cli.planning.pods import is_terminal

FINALIZER_ESTIMATE_S = 15
"""How long finalizers are given before the next look."""

DISCOVERY = "NamespaceDeletionDiscoveryFailure"
PARSING = "NamespaceDeletionGroupVersionParsingFailure"
CONTENT = "NamespaceDeletionContentFailure"
REMAINING = "NamespaceContentRemaining"
FINALIZERS = "NamespaceFinalizersRemaining"

_FINE = {
    DISCOVERY: ("ResourcesDiscovered", "All resources successfully discovered"),
    PARSING: ("ParsedGroupVersions", "All legacy kube types successfully parsed"),
    CONTENT: ("ContentDeleted", "All content successfully deleted, may be waiting on finalization"),
    REMAINING: ("ContentRemoved", "All content successfully removed"),
    FINALIZERS: ("ContentHasNoFinalizers", "All content-preserving finalizers finished"),
}


class Remains(msgspec.Struct):
    """The content of a namespace after one pass of deletion: by resource (``plural.group``) and by finalizer.

    estimate_s: how long the longest graceful termination may still take.
    """

    resources: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    discovery_error: str = ""
    content_errors: list[str] = msgspec.field(default_factory=list)
    estimate_s: int = 0
    pods_only: bool = False


class ContentRemains(SyncError):
    """Something could not be deleted; the namespace's conditions say what."""


def plan(remains: Remains) -> float | None:
    """Seconds until the next pass; None if nothing remains, so that the namespace can be finalized.

    Raises ContentRemains.
    """
    if remains.content_errors or remains.discovery_error:
        raise ContentRemains("; ".join([*remains.content_errors, remains.discovery_error]))
    return float(remains.estimate_s // 2 + 1) if remains.estimate_s else None


def problems(remains: Remains) -> dict[str, tuple[str, str]]:
    """The conditions that are true, with reason and message.

    While only pods have been looked at, what remains of them is not said.
    """
    found: dict[str, tuple[str, str]] = {}
    if remains.discovery_error:
        found[DISCOVERY] = ("DiscoveryFailed", remains.discovery_error)
    if remains.content_errors:
        errors = ", ".join(sorted(remains.content_errors))
        count = len(remains.content_errors)
        message = f"Failed to delete all resource types, {count} remaining: {errors}"
        found[CONTENT] = ("ContentDeletionFailed", message)
    if remains.pods_only:
        return found
    if remains.resources:
        each = sorted(f"{name} has {count} resource instances" for name, count in remains.resources.items())
        found[REMAINING] = ("SomeResourcesRemain", f"Some resources are remaining: {', '.join(each)}")
    if remains.finalizers:
        each = sorted(f"{name} in {count} resource instances" for name, count in remains.finalizers.items())
        message = f"Some content in the namespace has finalizers remaining: {', '.join(each)}"
        found[FINALIZERS] = ("SomeFinalizersRemain", message)
    return found


def status(old: tuple[Condition, ...], remains: Remains, now: datetime) -> tuple[Condition, ...]:
    """All five conditions, each kept as it was where it says the same; others are left alone."""
    bad = problems(remains)
    result = old
    for type_, (fine_reason, fine_message) in _FINE.items():
        reason, message = bad.get(type_, (fine_reason, fine_message))
        status = "True" if type_ in bad else "False"
        new = Condition(type_, status, reason, message, last_transition_time=format_time(now))
        result = updated(result, new)
    return result


def grace_s(pods: Iterable[Pod], deleted_at: str, now: datetime) -> int:
    """The longest grace period of a running pod; 0 once that much time has passed since the deletion."""
    longest = max(
        (pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_terminal(pod)),
        default=0,
    )
    return longest if (now - parse_time(deleted_at)).total_seconds() < longest else 0
