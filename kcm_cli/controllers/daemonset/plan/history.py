"""Decides which revisions are current, which are old, and which old ones to delete.

upstream: pkg/controller/daemon/update.go#constructHistory, cleanupHistory, snapshot
"""

from collections.abc import Iterable, Sequence

import msgspec

from kcm_cli.api.apps import DAEMON_SETS, ControllerRevision, DaemonSet
from kcm_cli.api.core import Pod
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.hashes import pod_template_hash
from kcm_cli.planning import revisions as rules
from kcm_cli.planning.pod_template import labels_of
from kcm_cli.planning.revisions import POD_HASH_LABEL

DEFAULT_HISTORY_LIMIT = 10


class Histories(msgspec.Struct, frozen=True):
    """The current revisions, which have the present template (usually one), and the old ones.

    number: the number that the current revision must have at least. data: the data of a revision with the present
    template.
    """

    current: tuple[ControllerRevision, ...]
    old: tuple[ControllerRevision, ...]
    number: int
    data: Doc


def sort_out(daemon_set: DaemonSet, revisions: Sequence[ControllerRevision]) -> Histories:
    """Separate the current revisions from the old ones.

    If no revision has the data that would be written now, the latest one is current if it has the same template in the
    form of an earlier release.
    """
    data = rules.patch_of(daemon_set.spec.template)
    current = rules.with_data(revisions, data)
    if not current and revisions:
        latest = rules.in_order(revisions)[-1]
        current = [latest] if rules.is_of(latest, daemon_set.spec.template) else []
    kept = {id(revision) for revision in current}
    old = tuple(revision for revision in revisions if id(revision) not in kept)
    return Histories(tuple(current), old, rules.next_number(old), data)


def to_keep(current: Sequence[ControllerRevision]) -> ControllerRevision:
    """Of several current revisions, the one with the highest number."""
    return max(rules.in_order(current), key=lambda revision: revision.revision)


def hash_of(revision: ControllerRevision) -> str:
    return revision.labels.get(POD_HASH_LABEL, "")


def name_and_body(daemon_set: DaemonSet, data: Doc, number: int) -> tuple[str, bytes]:
    """The name and the body of a new revision of the template."""
    hash_ = pod_template_hash(daemon_set.spec.template, daemon_set.status.collision_count)
    name = f"{daemon_set.name}-{hash_}"
    body = rules.encode(
        DAEMON_SETS,
        daemon_set,
        name=name,
        labels={**labels_of(daemon_set.spec.template), POD_HASH_LABEL: hash_},
        data=data,
        revision=number,
    )
    return name, body


def surplus(daemon_set: DaemonSet, old: Sequence[ControllerRevision], pods: Iterable[Pod]) -> list[ControllerRevision]:
    """The oldest of the old revisions beyond revisionHistoryLimit, without those that have pods."""
    limit = daemon_set.spec.revision_history_limit
    limit = DEFAULT_HISTORY_LIMIT if limit is None else limit
    if len(old) <= limit:
        return []
    live = {pod.labels.get(POD_HASH_LABEL, "") for pod in pods} - {""}
    return rules.surplus(old, limit, lambda revision: hash_of(revision) in live, count_used=True)
