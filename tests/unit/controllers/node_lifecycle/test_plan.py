"""Taints, labels and zones by the conditions of nodes, and nodes without heartbeats."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import NODES, Condition, Node, Taint
from kcm_cli.api.well_known import NOT_READY, UNREACHABLE
from kcm_cli.controllers.node_lifecycle import plan
from kcm_cli.controllers.node_lifecycle.plan import (
    NEVER,
    Health,
    Moment,
    Periods,
    Renewal,
    ZoneState,
    past_grace_period,
    status,
    update_health,
)
from kcm_cli.machinery import codec
from kcm_cli.machinery.times import format_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
CREATED = "2025-12-31T00:00:00Z"
PREFIX = "node.kubernetes.io/"


def at(seconds: float) -> str:
    return format_time(NOW + timedelta(seconds=seconds))


def node(
    *conditions: tuple[str, str],
    taints: tuple[tuple[str, str], ...] = (),
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Node:
    doc = {
        "metadata": {"name": "n", "uid": "u", "resourceVersion": "7", "creationTimestamp": CREATED, "labels": labels},
        "spec": {"taints": [{"key": key, "effect": effect} for key, effect in taints]} | spec,
        "status": {"conditions": [{"type": t, "status": s, "lastHeartbeatTime": at(0)} for t, s in conditions]},
    }
    return NODES.decode(codec.encode(doc))


# -- taints


@pytest.mark.parametrize(
    ("type_", "status", "key"),
    [
        pytest.param("Ready", "True", None, id="ready"),
        pytest.param("Ready", "False", "not-ready", id="not ready"),
        pytest.param("Ready", "Unknown", "unreachable", id="unreachable"),
        *[
            pytest.param(type_, status, key if status == "True" else None, id=f"{type_} {status}")
            for type_, key in [
                ("MemoryPressure", "memory-pressure"),
                ("DiskPressure", "disk-pressure"),
                ("PIDPressure", "pid-pressure"),
                ("NetworkUnavailable", "network-unavailable"),
            ]
            for status in ("True", "False", "Unknown")
        ],
        pytest.param("KernelDeadlock", "True", None, id="another condition"),
    ],
)
def test_taints_of_conditions(type_: str, status: str, key: str | None) -> None:
    assert plan.unscheduling_keys(node((type_, status))) == ({PREFIX + key} if key else set())


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        pytest.param(node(), None, id="nothing to do"),
        pytest.param(node(unschedulable=True), {("unschedulable", "NoSchedule")}, id="cordoned"),
        pytest.param(node(taints=((PREFIX + "unschedulable", "NoSchedule"),)), set(), id="uncordoned"),
        pytest.param(node(("Ready", "False"), taints=((PREFIX + "not-ready", "NoSchedule"),)), None, id="is right"),
        pytest.param(
            node(("Ready", "Unknown"), taints=((PREFIX + "not-ready", "NoSchedule"),)),
            {("unreachable", "NoSchedule")},
            id="swapped",
        ),
        pytest.param(
            node(("Ready", "True"), taints=((PREFIX + "not-ready", "NoExecute"),)), None, id="other effects stay"
        ),
        pytest.param(
            node(("DiskPressure", "True"), taints=((PREFIX + "disk-pressure", "NoExecute"),)),
            {("disk-pressure", "NoExecute"), ("disk-pressure", "NoSchedule")},
            id="the same key with another effect counts for nothing",
        ),
        pytest.param(
            node(("MemoryPressure", "True"), taints=(("example.com/mine", "NoSchedule"),)),
            {("example.com/mine", "NoSchedule"), ("memory-pressure", "NoSchedule")},
            id="taints of others stay",
        ),
    ],
)
def test_no_schedule_taints(shown: Node, expected: set[tuple[str, str]] | None) -> None:
    found = planned(shown)
    assert (None if found is None else {(key.removeprefix(PREFIX), effect) for key, effect in found}) == expected


def planned(shown: Node) -> list[tuple[str, str]] | None:
    """Keys and effects of the taints that are written; None if nothing is written."""
    patch = plan.plan_taints(shown, NOW)
    body: Any = patch.body if patch is not None else None
    return None if body is None else [(taint["key"], taint["effect"]) for taint in body["spec"]["taints"] or ()]


pairs = st.lists(
    st.tuples(
        st.sampled_from(["Ready", "MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable", "Other"]),
        st.sampled_from(["True", "False", "Unknown"]),
    ),
    unique_by=lambda pair: pair[0],
)
marks = st.lists(
    st.tuples(
        st.sampled_from([PREFIX + key for key in ("not-ready", "unreachable", "unschedulable", "pid-pressure", "x")]),
        st.sampled_from(["NoSchedule", "NoExecute"]),
    ),
    unique=True,
)


@given(pairs, marks, st.booleans())
def test_corrected_taints_are_not_changed_again(
    conditions: list[tuple[str, str]], taints: list[tuple[str, str]], cordoned: bool
) -> None:
    """Once done there is nothing to do, and no taint of others or of another effect was touched."""
    before = node(*conditions, taints=tuple(taints), unschedulable=cordoned)
    found = planned(before)
    after = found if found is not None else taints
    again = node(*conditions, taints=tuple(after), unschedulable=cordoned)
    assert planned(again) is None
    assert len(set(after)) == len(after)
    kept = {pair for pair in taints if pair[1] == "NoExecute" or pair[0] == PREFIX + "x"}
    assert kept <= set(after)
    assert {pair for pair in after if pair[1] == "NoExecute"} == {p for p in taints if p[1] == "NoExecute"}


def test_an_existing_taint_keeps_its_time() -> None:
    old = Taint(UNREACHABLE, "", "NoExecute", "2025-01-01T00:00:00Z")
    subject = NODES.decode(
        codec.encode({"metadata": {"name": "n"}, "spec": {"taints": [codec.decode_doc(codec.encode(old))]}})
    )
    assert plan.swap_taints(subject, {UNREACHABLE}, {NOT_READY}, "NoExecute", NOW) == (old,)
    assert list(plan.swap_taints(subject, {NOT_READY}, {UNREACHABLE}, "NoExecute", NOW)) == [
        Taint(NOT_READY, "", "NoExecute", at(0))
    ]


def test_the_patch_of_taints_has_the_resource_version() -> None:
    taints = [Taint("k", "v", "NoExecute", at(0)), Taint("l", "", "NoSchedule")]
    assert plan.taints_patch(node(), taints, "why").body == {
        "metadata": {"resourceVersion": "7"},
        "spec": {
            "taints": [
                {"key": "k", "effect": "NoExecute", "value": "v", "timeAdded": at(0)},
                {"key": "l", "effect": "NoSchedule"},
            ]
        },
    }
    body: Any = plan.taints_patch(node(), [], "why").body
    assert body["spec"] == {"taints": None}


@pytest.mark.parametrize(
    ("status", "key"), [("True", None), ("False", PREFIX + "not-ready"), ("Unknown", PREFIX + "unreachable")]
)
def test_eviction_key(status: str, key: str | None) -> None:
    found = plan.plan_eviction(Condition("Ready", status))
    assert (found and found[0]) == key


# -- labels and zones


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, {}, id="none"),
        pytest.param({"kubernetes.io/os": "linux"}, {"beta.kubernetes.io/os": "linux"}, id="missing"),
        pytest.param({"kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows"},
                     {"beta.kubernetes.io/os": "linux"}, id="different"),
        pytest.param({"kubernetes.io/arch": "arm64", "beta.kubernetes.io/arch": "arm64"}, {}, id="same"),
        pytest.param({"beta.kubernetes.io/os": "linux"}, {}, id="only the old one"),
    ],
)  # fmt: skip
def test_labels(labels: dict[str, str], expected: dict[str, str]) -> None:
    patch = plan.plan_labels(node(labels=labels))
    body: Any = patch.body if patch is not None else {"metadata": {"labels": {}}}
    assert body["metadata"]["labels"] == expected


ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE, OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "", id="none"),
        pytest.param({ZONE: "z"}, ":\x00:z", id="zone"),
        pytest.param({REGION: "r"}, "r:\x00:", id="region"),
        pytest.param({ZONE: "z", REGION: "r"}, "r:\x00:z", id="both"),
        pytest.param({OLD_ZONE: "z", OLD_REGION: "r"}, "r:\x00:z", id="the old names"),
        pytest.param({ZONE: "z", OLD_ZONE: "old"}, ":\x00:old", id="the deprecated zone takes precedence"),
        pytest.param(
            {REGION: "r", OLD_REGION: "old", ZONE: "z"}, "old:\x00:z", id="the deprecated region takes precedence"
        ),
        pytest.param({ZONE: "z", OLD_ZONE: ""}, "", id="an empty old one counts"),
    ],
)
def test_zone_of(labels: dict[str, str], expected: str) -> None:
    assert plan.zone_of(node(labels=labels)) == expected


@pytest.mark.parametrize(
    ("ready", "bad", "none", "expected"),
    [
        pytest.param(3, 0, 0, (0, ZoneState.NORMAL), id="all ready"),
        pytest.param(0, 0, 0, (0, ZoneState.NORMAL), id="no nodes"),
        pytest.param(0, 1, 0, (1, ZoneState.FULL), id="the only one is not"),
        pytest.param(0, 0, 2, (2, ZoneState.FULL), id="nodes without the condition are not ready"),
        pytest.param(1, 2, 0, (2, ZoneState.NORMAL), id="two are too few for a disruption"),
        pytest.param(1, 3, 0, (3, ZoneState.PARTIAL), id="three of four"),
        pytest.param(2, 3, 0, (3, ZoneState.PARTIAL), id="three of five"),
        pytest.param(3, 3, 0, (3, ZoneState.NORMAL), id="half are below the threshold"),
        pytest.param(9, 11, 0, (11, ZoneState.PARTIAL), id="exactly the threshold"),
    ],
)
def test_zone_state(ready: int, bad: int, none: int, expected: tuple[int, ZoneState]) -> None:
    conditions: list[Condition | None] = [Condition("Ready", "True")] * ready + [Condition("Ready", "False")] * bad
    assert plan.zone_state([*conditions, *[None] * none], 0.55) == expected


# -- health

READY = Condition("Ready", "True", last_heartbeat_time=at(0))
FIFTH, SIXTH = Renewal(5, "5"), Renewal(6, "6")
AFTER, BEFORE = 1_000_000.0, 999_940.0
"""Monotonic seconds: now, and a while ago."""


@pytest.mark.parametrize(
    ("known", "shown", "renewed", "expected"),
    [
        pytest.param(None, node(), NEVER, Health(AFTER - 86400, None), id="new, never posted: since creation"),
        pytest.param(None, node(("Ready", "True")), NEVER, Health(AFTER, READY), id="new, posted: now"),
        pytest.param(Health(BEFORE, None), node(), NEVER, Health(BEFORE, None), id="still nothing"),
        pytest.param(Health(BEFORE, None), node(("Ready", "True")), NEVER, Health(AFTER, READY), id="posted first"),
        pytest.param(Health(BEFORE, READY, FIFTH), node(), NEVER, Health(AFTER, None, FIFTH), id="condition removed"),
        pytest.param(Health(BEFORE, READY), node(("Ready", "True")), NEVER, Health(BEFORE, READY), id="no new beat"),
        pytest.param(Health(BEFORE, Condition("Ready", "True", last_heartbeat_time=at(-9))), node(("Ready", "True")),
                     NEVER, Health(AFTER, READY), id="a new beat"),
        pytest.param(Health(BEFORE, READY, FIFTH), node(("Ready", "True")), SIXTH, Health(AFTER, READY, SIXTH),
                     id="lease"),
        pytest.param(Health(BEFORE, READY, FIFTH), node(("Ready", "True")), FIFTH, Health(BEFORE, READY, FIFTH),
                     id="the same lease"),
        pytest.param(Health(BEFORE, None), node(), SIXTH, Health(AFTER, None, SIXTH),
                     id="lease of a node that never posted"),
        pytest.param(Health(BEFORE, READY, SIXTH), node(("Ready", "True")), Renewal(7, "5"),
                     Health(AFTER, READY, Renewal(7, "5")), id="the node's clock was set back"),
        pytest.param(Health(BEFORE, READY, SIXTH), node(("Ready", "True")), FIFTH, Health(BEFORE, READY, SIXTH),
                     id="an older lease, of a cache that is behind"),
        pytest.param(Health(BEFORE, READY, SIXTH), node(("Ready", "True")), Renewal(7, "6"),
                     Health(BEFORE, READY, SIXTH), id="the lease has changed otherwise"),
        pytest.param(Health(BEFORE, READY, SIXTH), node(("Ready", "True")), Renewal(2, "7"),
                     Health(AFTER, READY, Renewal(2, "7")), id="the server was restored from a backup"),
    ],
)  # fmt: skip
def test_update_health(known: Health | None, shown: Node, renewed: Renewal, expected: Health) -> None:
    assert update_health(known, shown, renewed, Moment(NOW, AFTER)) == expected


@pytest.mark.parametrize(
    ("ready", "since_s", "expected"),
    [
        pytest.param(READY, 40, False, id="just in time"),
        pytest.param(READY, 41, True, id="late"),
        pytest.param(None, 60, False, id="starting"),
        pytest.param(None, 61, True, id="never started"),
    ],
)
def test_past_grace_period(ready: Condition | None, since_s: int, expected: bool) -> None:
    assert past_grace_period(Health(AFTER - since_s, ready), Periods(40, 60), AFTER) is expected


def test_a_silent_node_is_unknown() -> None:
    shown = node(("Ready", "True"), ("MemoryPressure", "Unknown"), ("NetworkUnavailable", "False"), ("Other", "True"))
    found = {c.type: c for c in status(shown, NOW)}
    assert {c.type: c.status for c in found.values()} == {
        "Ready": "Unknown",
        "MemoryPressure": "Unknown",
        "NetworkUnavailable": "False",
        "Other": "True",
        "DiskPressure": "Unknown",
        "PIDPressure": "Unknown",
    }
    stopped, never = found["Ready"], found["DiskPressure"]
    assert (stopped.reason, stopped.message) == ("NodeStatusUnknown", "Kubelet stopped posting node status.")
    assert (never.reason, never.message) == ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
    assert (stopped.last_heartbeat_time, stopped.last_transition_time) == (at(0), at(0))
    assert (never.last_heartbeat_time, never.last_transition_time) == (CREATED, at(0))
    assert found["MemoryPressure"].reason == ""
