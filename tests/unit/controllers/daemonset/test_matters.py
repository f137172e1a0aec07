"""Which updates of a daemon pod queue its DaemonSet."""

from itertools import product

from kcm_cli.api.core import PODS, Pod
from kcm_cli.controllers.daemonset.plan import plan, status
from kcm_cli.controllers.daemonset.plan.placement import ALWAYS, NEVER, by_node
from kcm_cli.controllers.daemonset.plan.pod import matters
from kcm_cli.machinery import codec
from kcm_cli.planning.actions import Delete
from tests.unit.controllers.daemonset.conftest import NOW, pod_of, set_of, take_snapshot

SURGE = {"maxSurge": 1, "maxUnavailable": 0}


def noted(pod: Pod) -> Pod:
    """The pod with an annotation and a container that was started again."""
    doc = codec.decode_doc(codec.encode(pod))
    doc["metadata"] |= {"annotations": {"note": "x"}}
    doc["status"] |= {"containerStatuses": [{"name": "c", "restartCount": 3}], "podIP": "10.0.0.1"}
    return PODS.decode(codec.encode(doc))


def versions() -> list[Pod]:
    states = product(
        ("ready", "running", "failed", "succeeded"), (False, True), (False, True), (5.0, 60.0), ("new", "old")
    )
    return [
        pod_of("n1/a", state, deleting=deleting, bound=bound, ready_for_s=since, hash_=hash_)
        for state, deleting, bound, since, hash_ in states
    ]


def decided(pod: Pod) -> object:
    """What a sync makes of a pod beside another one and alone."""
    found = []
    for options, fit, more in product(({}, {"rolling": SURGE}), (ALWAYS, NEVER), ((), (pod_of("n1/b", hash_="old"),))):
        for seconds in (0, 30):
            daemon_set = set_of(minReadySeconds=seconds, **options)
            snapshot = take_snapshot(daemon_set, {"n1": fit}, pod, *more)
            placed = plan(snapshot, NOW)
            names = [one.name if isinstance(one, Delete) else "" for stage in placed.stages for one in stage.actions]
            counts = status(snapshot, NOW, observed=True)
            found.append((names, placed.notices, placed.failed, counts, tuple(by_node([pod]))))
    return found


def test_each_update_that_a_sync_sees_queues_the_daemon_set() -> None:
    """Versions in between may be missing, so that all fields may change at once, but for the labels."""
    seen = [(one, decided(one)) for one in versions()]
    for (old, before), (new, now) in product(seen, seen):
        assert old.labels != new.labels or before == now or matters(old, new)


def test_a_note_queues_no_daemon_set() -> None:
    for pod in versions():
        assert not matters(pod, noted(pod)) and decided(pod) == decided(noted(pod))
