"""The conditions of a terminating namespace, and the delay before the next pass.

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
"""Seconds until the next pass over objects with finalizers."""

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
    """The content that remains after a pass: counts by resource (``plural.group``) and by finalizer.

    estimate_s: seconds until the pods have terminated gracefully, at most. pods_only: only pods were deleted in this
    pass.
    """

    resources: Counter[str] = msgspec.field(default_factory=Counter)
    finalizers: Counter[str] = msgspec.field(default_factory=Counter)
    discovery_error: str = ""
    content_errors: list[str] = msgspec.field(default_factory=list)
    estimate_s: int = 0
    pods_only: bool = False


class ContentRemains(SyncError):
    """Some content could not be deleted. The namespace's conditions list it."""


def plan(remains: Remains) -> float | None:
    """Seconds until the next pass; None if nothing remains and the namespace can be finalized.

    Raises ContentRemains.
    """
    problems = [*remains.content_errors, *([remains.discovery_error] if remains.discovery_error else ())]
    if problems:
        raise ContentRemains("; ".join(problems))
    return float(remains.estimate_s // 2 + 1) if remains.estimate_s else None


def problems(remains: Remains) -> dict[str, tuple[str, str]]:
    """The conditions that are true, with their reasons and messages.

    After a pass over pods only, remaining content is not reported.
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
    """The conditions with the five of this controller. Unchanged ones keep their transition time."""
    bad = problems(remains)
    result = old
    for type_, (fine_reason, fine_message) in _FINE.items():
        reason, message = bad.get(type_, (fine_reason, fine_message))
        status = "True" if type_ in bad else "False"
        new = Condition(type_, status, reason, message, last_transition_time=format_time(now))
        result = updated(result, new)
    return result


def grace_s(pods: Iterable[Pod], deleted_at: str, now: datetime) -> int:
    """The longest grace period of the pods that have not ended; 0 if that time has passed since the deletion."""
    longest = max(
        (pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_terminal(pod)),
        default=0,
    )
    return longest if (now - parse_time(deleted_at)).total_seconds() < longest else 0
