"""The final differences of two runs: what follows from the change, and not from chance."""

from datetime import UTC, datetime
from typing import Any

import pytest

from kcm_cli.api.batch import JOBS
from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import Selector
from kcm_cli.plan.answer import Field, Object
from kcm_cli.plan.compare import _owner, differences, timeline
from kcm_cli.plan.observe import Occurrence
from kcm_cli.plan.problems import Key
from kcm_cli.plan.shown_part import Shown
from kcm_cli.plan.simulation import Simulation
from kcm_cli.plan.snapshot import Snapshot

ONE, OTHER = "37d0dc72-d670-4dba-a71a-bc32986f97db", "a37cacb2-59d7-42f3-8cfd-ba75be8d7023"


def outcome(finals: dict[Key, Any]) -> Simulation:
    encoded = {key: codec.encode(doc) for key, doc in finals.items()}
    return Simulation(0.0, [], [], [], encoded, {}, [], {}, {})  # type: ignore[arg-type]


def job(uid: str, *, ended: str = "2026-11-22T19:10:36Z", parallelism: int = 1) -> dict[Key, Any]:
    metadata = {"name": "c-1", "namespace": "default", "uid": uid, "labels": {"controller-uid": uid}}
    spec = {"parallelism": parallelism, "selector": {"matchLabels": {"controller-uid": uid}}}
    doc = {"kind": "Job", "metadata": metadata, "spec": spec, "status": {"completionTime": ended}}
    return {(JOBS.gvr, "default", "c-1"): doc}


def claim(uid: str) -> dict[Key, Any]:
    metadata = {"name": "data", "namespace": "default", "uid": uid}
    doc = {"kind": "PersistentVolumeClaim", "metadata": metadata, "spec": {"volumeName": f"pvc-{uid}"}}
    return {(PERSISTENT_VOLUME_CLAIMS.gvr, "default", "data"): doc}


def fields(base: dict[Key, Any], changed: dict[Key, Any]) -> list[Field]:
    shown = Shown("", Selector(), Snapshot(datetime.now(UTC), "", "", {}), ())
    return [one for found in differences(outcome(base), outcome(changed), shown) for one in found.fields]


def happens(*occurrences: tuple[float, str, str]) -> Simulation:
    """An outcome with occurrences: seconds, what, by whom."""
    web = Object("Deployment", "default", "web")
    found = outcome({})
    found.occurred = [Occurrence(at_s, what, web, "", cause) for at_s, what, cause in occurrences]
    return found


BY_SET, BY_DRAIN = "replicaset-controller", "kubectl"
ANYWAY = [(300.0, "terminating", BY_SET), (300.1, "terminating", BY_SET), (302.0, "gone", "kubelet")]


@pytest.mark.parametrize(
    ("without", "with_change", "left"),
    [
        (ANYWAY, ANYWAY, []),
        # by another client
        (ANYWAY, [(0.0, "terminating", BY_DRAIN), *ANYWAY], [(0.0, 1, BY_DRAIN)]),
        # by the same one, at another time
        (ANYWAY, [(1.0, "terminating", BY_SET), *ANYWAY], [(1.0, 1, BY_SET)]),
        (ANYWAY, [*ANYWAY, (310.0, "terminating", BY_SET)], [(310.0, 1, BY_SET)]),
        # the same moment of both runs, some seconds off
        (ANYWAY, [(at + 5, what, by) for at, what, by in ANYWAY], []),
        # much later than without the change
        (ANYWAY, [(at + 500, what, by) for at, what, by in ANYWAY], [(800.0, 2, BY_SET), (802.0, 1, "kubelet")]),
        ([], [(float(at), "ready", "kubelet") for at in (0, 9, 18, 40)], [(0.0, 3, "kubelet"), (40.0, 1, "kubelet")]),
        ([(50.0, "ready", "kubelet")], [(0.0, "ready", "kubelet"), (50.0, "ready", "kubelet")], [(0.0, 1, "kubelet")]),
    ],
)
def test_what_happens_anyway_is_not_blamed_on_the_change(
    without: list[tuple[float, str, str]],
    with_change: list[tuple[float, str, str]],
    left: list[tuple[float, int, str]],
) -> None:
    found = timeline(happens(*without), happens(*with_change))
    assert [(one.at_s, one.count, one.cause) for one in found] == left


def test_at_the_same_moment_causes_come_first() -> None:
    order = ["evicted", "terminating", "gone", "created", "pending", "ready", "complete", "drained"]
    found = timeline(happens(), happens(*((0.0, what, "") for what in reversed(order))))
    assert [one.what for one in found] == order


def test_references_of_cron_jobs_to_their_jobs_are_no_differences() -> None:
    def cron_job(version: str) -> dict[Key, Any]:
        active = [{"kind": "Job", "name": "c-1", "uid": version, "resourceVersion": version}]
        doc = {"kind": "CronJob", "metadata": {"name": "c", "namespace": "default"}, "status": {"active": active}}
        return {(JOBS.gvr, "default", "c"): doc}

    assert fields(cron_job("1"), cron_job("2")) == []


def test_an_object_that_both_runs_create_has_another_uid_in_each() -> None:
    assert fields(job(ONE), job(OTHER)) == []
    assert fields(claim(ONE), claim(OTHER)) == []


def test_the_uid_of_another_object_is_a_difference() -> None:
    other = job(OTHER)
    other[JOBS.gvr, "default", "c-1"]["metadata"]["labels"]["controller-uid"] = "5c1a0f5e-0000-4000-8000-000000000000"
    assert [one.path for one in fields(job(ONE), other)] == ["metadata.labels.controller-uid"]


def test_times_can_differ_by_some_seconds() -> None:
    assert fields(job(ONE), job(OTHER, ended="2026-11-22T19:10:31Z")) == []
    later = "2026-11-22T19:15:31Z"
    assert fields(job(ONE), job(OTHER, ended=later)) == [Field("status.completionTime", "2026-11-22T19:10:36Z", later)]


def test_differences_are_listed() -> None:
    assert fields(job(ONE), job(OTHER, parallelism=2)) == [Field("spec.parallelism", 1, 2)]


def test_numbers_differ_from_strings_and_missing_from_null() -> None:
    other = job(OTHER)
    other[JOBS.gvr, "default", "c-1"]["spec"]["parallelism"] = "1"
    other[JOBS.gvr, "default", "c-1"]["metadata"]["labels"]["x"] = "null"
    assert [one.path for one in fields(job(ONE), other)] == ["metadata.labels.x", "spec.parallelism"]


def test_an_empty_object_of_a_spec_is_not_none() -> None:
    """A selector of a budget that is {} selects all pods, and none without one; custom resources turn parts on so."""
    other = job(OTHER)
    other[JOBS.gvr, "default", "c-1"]["metadata"]["annotations"] = {}
    assert fields(job(ONE), other) == []
    other[JOBS.gvr, "default", "c-1"]["spec"]["podFailurePolicy"] = {}
    assert [one.path for one in fields(job(ONE), other)] == ["spec.podFailurePolicy"]


def test_an_object_with_odd_metadata_does_not_affect_others() -> None:
    odd = job(OTHER)
    odd[JOBS.gvr, "default", "odd"] = {"kind": "Job", "metadata": {"name": "odd", "uid": 7, "labels": "none"}}
    assert fields(job(ONE), odd) == []


@pytest.mark.parametrize(
    ("references", "owner"),
    [
        ([None, 7, {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "a"}], "StatefulSet/a"),
        ([{"kind": "A", "name": "a"}, {"kind": "B", "name": "b", "controller": True}], "B/b"),
        ([{"apiVersion": "apps.kruise.io/v1", "kind": "StatefulSet", "name": "a"}], "StatefulSet.apps.kruise.io/a"),
        ({"kind": "A"}, ""),
        ([None], ""),
    ],
)
def test_the_owner_of_an_odd_object(references: object, owner: str) -> None:
    assert _owner({"metadata": {"ownerReferences": references}}) == owner
