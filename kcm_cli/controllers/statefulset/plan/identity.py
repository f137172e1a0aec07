"""Who a pod of a StatefulSet is: its name, its ordinal, its labels.

upstream: pkg/controller/statefulset/stateful_set_utils.go
"""

from collections.abc import Collection, Mapping

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.planning.revisions import POD_HASH_LABEL

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_MAX_ORDINAL = 2**31 - 1
MAX_MISSING = 500
"""So many missing pods are considered, and created, in one sync at most."""


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """``db-3`` as ("db", 3). Without an ordinal the parent is empty; one that is too large counts as -1."""
    parent, dash, digits = name.rpartition("-")
    if not dash or not (digits.isascii() and digits.isdigit()):
        return "", -1
    return parent, as_read(int(digits))


def as_read(ordinal: int) -> int:
    """An ordinal as names tell it: -1 for one that is too large. A pod made for that has no valid name, as upstream's,
    while one that could be made would not be known as the set's own."""
    return ordinal if ordinal <= _MAX_ORDINAL else -1


def ordinal_of(pod: Pod) -> int:
    """The ordinal in a pod's name; -1 if it has none."""
    return parent_and_ordinal(pod.name)[1]


def is_member(set_: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name makes it one of the set's."""
    return parent_and_ordinal(pod.name)[0] == set_.name


def replicas_of(set_: StatefulSet) -> int:
    replicas = set_.spec.replicas
    return 1 if replicas is None else replicas


def start_of(set_: StatefulSet) -> int:
    """The first ordinal."""
    return set_.spec.ordinals.start if set_.spec.ordinals is not None else 0


def ordinals_at_hand(set_: StatefulSet, taken: Collection[int]) -> range:
    """The wanted ordinals from the lowest up to the MAX_MISSING-th that is not ``taken``.

    However many replicas are asked for, a sync looks at so many more than there are.
    """
    start = start_of(set_)
    end = start + replicas_of(set_)
    missing = 0
    for ordinal in range(start, end):
        missing += ordinal not in taken
        if missing == MAX_MISSING:
            return range(start, ordinal + 1)
    return range(start, end)


def in_range(set_: StatefulSet, ordinal: int) -> bool:
    """Whether the set wants a pod of this ordinal."""
    start = start_of(set_)
    return start <= ordinal < start + replicas_of(set_)


def pod_name(set_: StatefulSet, ordinal: int) -> str:
    return f"{set_.name}-{ordinal}"


def identity_labels(set_: StatefulSet, ordinal: int) -> Mapping[str, str]:
    """The labels by which a pod can be addressed."""
    return {POD_NAME_LABEL: pod_name(set_, ordinal), POD_INDEX_LABEL: str(ordinal)}


def identity_matches(set_: StatefulSet, pod: Pod) -> bool:
    """Whether name and labels say who the pod is."""
    parent, ordinal = parent_and_ordinal(pod.name)
    return (
        ordinal >= 0
        and parent == set_.name
        and pod.name == pod_name(set_, ordinal)
        and pod.labels.get(POD_NAME_LABEL) == pod.name
    )


def revision_of(pod: Pod) -> str:
    """The name of the revision that the pod was created from."""
    return pod.labels.get(POD_HASH_LABEL, "")
