"""The identity of a StatefulSet's pod: its name, ordinal and labels.

upstream: pkg/controller/statefulset/stateful_set_utils.go
"""

from collections.abc import Collection, Mapping

from kcm_cli.api.apps import StatefulSet
from kcm_cli.api.core import Pod
from kcm_cli.planning.replicas import replicas_of
from kcm_cli.planning.revisions import POD_HASH_LABEL

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
POD_INDEX_LABEL = "apps.kubernetes.io/pod-index"

_MAX_ORDINAL = 2**31 - 1
MAX_MISSING = 500
"""The maximum number of missing pods that one sync considers and creates."""
MAX_CLAIMS = 10_000
"""With so many claims to create, or of surplus pods, a sync leaves the rest to the next one. Those of one pod are not
divided."""


def parent_and_ordinal(name: str) -> tuple[str, int]:
    """``db-3`` as ("db", 3). Without an ordinal ("", -1); an ordinal that is too large counts as -1."""
    parent, dash, digits = name.rpartition("-")
    if not dash or not (digits.isascii() and digits.isdigit()):
        return "", -1
    return parent, as_read(int(digits))


def as_read(ordinal: int) -> int:
    """The ordinal as it is parsed from names: -1 if it is too large.

    A pod created for -1 has an invalid name, as with upstream. With the large ordinal its name would be valid, but the
    pod would not be recognized as the set's.
    """
    return ordinal if ordinal <= _MAX_ORDINAL else -1


def ordinal_of(pod: Pod) -> int:
    """The ordinal in a pod's name; -1 if there is none."""
    return parent_and_ordinal(pod.name)[1]


def is_member(set_: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name consists of the set's name and an ordinal."""
    return parent_and_ordinal(pod.name)[0] == set_.name


def start_of(set_: StatefulSet) -> int:
    """spec.ordinals.start, the first ordinal."""
    return set_.spec.ordinals.start if set_.spec.ordinals is not None else 0


def ordinals_at_hand(set_: StatefulSet, taken: Collection[int]) -> range:
    """The wanted ordinals from the lowest up to the MAX_MISSING-th that is not ``taken``; fewer, of many claims.

    This bounds the work of a sync, whatever the number of replicas and claim templates.
    """
    start = start_of(set_)
    end = start + replicas_of(set_)
    most = min(MAX_MISSING, pods_with_claims(set_))
    missing = 0
    for ordinal in range(start, end):
        missing += ordinal not in taken
        if missing == most:
            return range(start, ordinal + 1)
    return range(start, end)


def pods_with_claims(set_: StatefulSet) -> int:
    """The number of pods that have MAX_CLAIMS claims together; at least 1."""
    return max(1, MAX_CLAIMS // max(1, len(set_.spec.volume_claim_templates)))


def enough_claims(missing: int) -> bool:
    """Whether a sync that creates so many claims creates no others."""
    return missing >= MAX_CLAIMS


def in_range(set_: StatefulSet, ordinal: int) -> bool:
    """Whether the ordinal is one of the wanted ones."""
    start = start_of(set_)
    return start <= ordinal < start + replicas_of(set_)


def pod_name(set_: StatefulSet, ordinal: int) -> str:
    return f"{set_.name}-{ordinal}"


def identity_labels(set_: StatefulSet, ordinal: int) -> Mapping[str, str]:
    """The labels with the pod's name and index."""
    return {POD_NAME_LABEL: pod_name(set_, ordinal), POD_INDEX_LABEL: str(ordinal)}


def identity_matches(set_: StatefulSet, pod: Pod) -> bool:
    """Whether the pod's name and labels are right."""
    parent, ordinal = parent_and_ordinal(pod.name)
    return (
        ordinal >= 0
        and parent == set_.name
        and pod.name == pod_name(set_, ordinal)
        and pod.labels.get(POD_NAME_LABEL) == pod.name
    )


def revision_of(pod: Pod) -> str:
    """The name of the revision that the pod was created from; empty if unknown."""
    return pod.labels.get(POD_HASH_LABEL, "")
