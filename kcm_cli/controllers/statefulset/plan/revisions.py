"""The current and the update revision of a StatefulSet.

The revision of the present template may be the latest one, an earlier one that is renumbered (after a rollback), or
missing.

upstream: pkg/controller/statefulset/stateful_set_control.go#getStatefulSetRevisions, truncateHistory
"""

from collections.abc import Sequence

import msgspec

from kcm_cli.api.apps import STATEFUL_SETS, ControllerRevision, StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.controllers.statefulset.plan.identity import revision_of
from kcm_cli.controllers.statefulset.plan.snapshot import Revision
from kcm_cli.machinery import go_json
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.hashes import controller_revision_hash
from kcm_cli.planning import revisions as history
from kcm_cli.planning.pod_template import labels_of

DEFAULT_HISTORY_LIMIT = 10


class Existing(msgspec.Struct, frozen=True):
    """The revision exists. ``number``: its new number; None if it has the highest one."""

    revision: ControllerRevision
    number: int | None = None


class Missing(msgspec.Struct, frozen=True):
    """The revision has to be created, with this data and number."""

    data: Doc
    number: int


def wanted(set_: StatefulSet, revisions: Sequence[ControllerRevision], *, semantic: bool = True) -> Existing | Missing:
    """The revision of the set's template. ``revisions`` are sorted by number.

    semantic: accept the latest revision if it has the same template in the form of an earlier release (gate
    StatefulSetSemanticRevisionComparison).
    """
    data = history.patch_of(set_.spec.template)
    equal = history.with_data(revisions, data)
    if equal:
        latest = equal[-1] is revisions[-1] or history.with_data(revisions[-1:], data)
        return Existing(revisions[-1]) if latest else Existing(equal[-1], history.next_number(revisions))
    if semantic and revisions and history.is_of(revisions[-1], set_.spec.template):
        return Existing(revisions[-1])
    return Missing(data, history.next_number(revisions))


def name_for(set_: StatefulSet, data: Doc, collisions: int) -> str:
    """The name of a revision with this data, after this number of collisions."""
    return history.name_of(set_.name, controller_revision_hash(go_json.encode(data), collisions))


def body_of(set_: StatefulSet, missing: Missing, collisions: int, name: str) -> bytes:
    """The body of a new revision. Its hash label has the hash of the first name that was tried."""
    hash_ = controller_revision_hash(go_json.encode(missing.data), collisions)
    return history.encode(
        STATEFUL_SETS,
        set_,
        name=name,
        labels={**labels_of(set_.spec.template), history.HASH_LABEL: hash_},
        data=missing.data,
        revision=missing.number,
    )


def current(set_: StatefulSet, revisions: Sequence[ControllerRevision], update: Revision) -> Revision:
    """The revision that status.currentRevision names; the update revision if that does not exist."""
    name = set_.status.current_revision
    if name != update.name:
        for revision in revisions:
            if revision.name == name:
                template = history.template_of(revision)
                return Revision(name, update.template if template is None else template)
    return update


def surplus(
    set_: StatefulSet, revisions: Sequence[ControllerRevision], pods: Sequence[Pod], live: Sequence[str]
) -> list[ControllerRevision]:
    """The oldest revisions beyond revisionHistoryLimit, without ``live`` ones and those that have pods."""
    limit = set_.spec.revision_history_limit
    limit = DEFAULT_HISTORY_LIMIT if limit is None else limit
    used = {revision_of(pod) for pod in pods}.union(live)
    return history.surplus(revisions, limit, lambda revision: revision.name in used, count_used=False)
