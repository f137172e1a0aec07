"""Times of evictions by device taints, and the status of rules."""

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.api.core import Pod
from kcm_cli.api.devices import AllocatedDevice, DeviceTaint, DeviceTaintRule, ResourceClaim, ResourceSlice
from kcm_cli.controllers.device_taint_eviction import plan
from kcm_cli.controllers.device_taint_eviction.plan import Counts, Eviction, Tainting
from kcm_cli.controllers.device_taint_eviction.taints import Rules, Taints, selects

START = datetime(2026, 1, 1, tzinfo=UTC)
TAINT = DeviceTaint("k", "v", "NoExecute", "2026-01-01T00:00:00Z")
LATER = DeviceTaint("l", "v", "NoExecute", "2026-01-01T00:01:00Z")


def after(seconds: int) -> datetime:
    return START + timedelta(seconds=seconds)


def tolerating(seconds: int | None = None, **fields: str) -> dict[str, Any]:
    return {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds} | fields


def device(*tolerations: dict[str, Any], name: str = "d") -> AllocatedDevice:
    doc = {"driver": "drv", "pool": "p", "device": name, "tolerations": tolerations}
    return msgspec.convert(doc, AllocatedDevice)


def rule(name: str = "r", effect: str = "NoExecute", **selector: str) -> DeviceTaintRule:
    taint = {"key": "k", "effect": effect, "timeAdded": TAINT.time_added}
    meta = {"name": name, "uid": f"{name}-uid", "generation": 3}
    return msgspec.convert({"metadata": meta, "spec": {"deviceSelector": selector, "taint": taint}}, DeviceTaintRule)


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        pytest.param([], after(0), id="not tolerated"),
        pytest.param([tolerating()], None, id="for ever"),
        pytest.param([tolerating(30)], after(30), id="for a time"),
        pytest.param([tolerating(-5)], after(0), id="for less than nothing"),
        pytest.param([tolerating(30), tolerating(10)], after(10), id="the shortest counts"),
        pytest.param([tolerating(10), tolerating()], None, id="one for ever"),
        pytest.param([tolerating(key="other")], after(0), id="another key"),
        pytest.param([tolerating(effect="")], after(0), id="of no effect in particular"),
        pytest.param([tolerating(effect="NoSchedule")], after(0), id="another effect"),
    ],
)
def test_time_of_eviction_by_a_device(tolerations: list[dict[str, Any]], expected: datetime | None) -> None:
    assert plan.leave(device(*tolerations), Tainting(TAINT)) == expected


def test_a_taint_with_an_invalid_time_evicts_nothing() -> None:
    assert plan.leave(device(), Tainting(DeviceTaint("k", "v", "NoExecute", "yesterday"))) is None


def test_the_first_taint_decides_and_all_rules_are_named() -> None:
    found = [
        (device(), Tainting(LATER, ("b", "1"))),
        (device(), Tainting(TAINT)),
        (device(), Tainting(TAINT, ("a", "2"))),
    ]
    assert plan.eviction(found) == Eviction(after(0), (("a", "2"), ("b", "1")))
    assert plan.eviction([(device(tolerating()), Tainting(TAINT, ("a", "2")))]) is None


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ({}, True),
        ({"driver": "drv"}, True),
        ({"driver": "other"}, False),
        ({"pool": "p", "device": "d"}, True),
        ({"pool": "p", "device": "e"}, False),
    ],
)
def test_devices_that_a_rule_selects(selector: dict[str, str], expected: bool) -> None:
    assert plan.matches(rule(**selector), "drv", "p", "d") is expected


def test_a_rule_without_selector_selects_nothing() -> None:
    assert not plan.matches(msgspec.convert({"spec": {"taint": {}}}, DeviceTaintRule), "drv", "p", "d")


def pod(name: str = "p", node: str = "n", namespace: str = "ns", **meta: str) -> Pod:
    entries = [{"name": "a", "resourceClaimName": "c"}, {"name": "b", "resourceClaimTemplateName": "t"}]
    statuses = [{"name": "b", "resourceClaimName": "made"}]
    doc = {
        "metadata": {"name": name, "namespace": namespace, "uid": name} | meta,
        "spec": {"nodeName": node, "resourceClaims": entries},
        "status": {"resourceClaimStatuses": statuses},
    }
    return msgspec.convert(doc, Pod)


def claim(*users: str, name: str = "c", owner: str = "", devices: tuple[str, ...] = ("d",)) -> ResourceClaim:
    meta: dict[str, Any] = {"name": name, "namespace": "ns"}
    if owner:
        meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "Pod", "uid": owner, "controller": True}]
    results = [{"driver": "drv", "pool": "p", "device": one} for one in devices]
    reserved = [{"resource": "pods", "name": user, "uid": user} for user in users]
    status = {"allocation": {"devices": {"results": results}}, "reservedFor": reserved}
    return msgspec.convert({"metadata": meta, "status": status}, ResourceClaim)


A, B = Eviction(after(10), (("a", "1"),)), Eviction(after(5), (("b", "1"),))


@pytest.mark.parametrize(
    ("user", "evictions", "expected"),
    [
        pytest.param(pod(), {}, None, id="nothing tainted"),
        pytest.param(pod(), {"ns/c": (claim("p"), A)}, A, id="a claim by name"),
        pytest.param(pod(node=""), {"ns/c": (claim("p"), A)}, None, id="not bound"),
        pytest.param(pod(), {"ns/c": (claim("q"), A)}, None, id="reserved for another"),
        pytest.param(pod(), {"ns/made": (claim("p", name="made", owner="p"), A)}, A, id="a generated claim"),
        pytest.param(pod(), {"ns/made": (claim("p", name="made", owner="q"), A)}, None, id="generated for another pod"),
        pytest.param(
            pod(),
            {"ns/c": (claim("p"), A), "ns/made": (claim("p", name="made", owner="p"), B)},
            Eviction(after(5), (("a", "1"), ("b", "1"))),
            id="both",
        ),
    ],
)
def test_time_of_eviction_of_a_pod(user: Pod, evictions: Any, expected: Eviction | None) -> None:
    assert plan.plan(user, evictions, groups=False) == expected


def test_terminating_pods_do_not_count_as_pending() -> None:
    one = rule()
    evictions = {"ns/c": (claim("p", "q"), Eviction(after(0), (("r", "r-uid"),)))}
    pods = [pod("p"), pod("q", deletionTimestamp="x"), pod("z")]
    assert [plan.is_pending(one, each, evictions, groups=False) for each in pods] == [True, False, False]
    assert not any(plan.is_pending(rule("other"), each, evictions, groups=False) for each in pods)


NO_EFFECT = (
    "if the effect was NoExecute. This information will not be updated again. "
    "Recreate the DeviceTaintRule to trigger an update."
)


@pytest.mark.parametrize(
    ("effect", "counts", "status", "reason", "message"),
    [
        ("NoExecute", Counts(), "False", "NotStarted", ""),
        ("NoExecute", Counts(1, 1), "True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
        (
            "NoExecute",
            Counts(3, 2, evicted=1),
            "True",
            "PodsPendingEviction",
            "3 pods need to be evicted in 2 different namespaces. 1 pod evicted since starting the controller.",
        ),
        ("NoExecute", Counts(evicted=2), "False", "Completed", "2 pods evicted since starting the controller."),
        (
            "None",
            Counts(1, 1, 1, 1),
            "False",
            "NoEffect",
            "1 published device selected. 1 allocated device selected. "
            f"1 pod would be evicted in 1 namespace {NO_EFFECT}",
        ),
        (
            "None",
            Counts(0, 0, 2, 0),
            "False",
            "NoEffect",
            "2 published devices selected. 0 allocated devices selected. "
            f"0 pods would be evicted in 0 different namespaces {NO_EFFECT}",
        ),
        ("NoSchedule", Counts(), "False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
    ],
)
def test_status_of_a_rule(effect: str, counts: Counts, status: str, reason: str, message: str) -> None:
    found = plan.status(rule(effect=effect), counts)
    assert (found.type, found.status, found.reason, found.message) == ("EvictionInProgress", status, reason, message)
    assert found.observed_generation == 3


def slice_of(name: str, generation: int, **tainted: str) -> ResourceSlice:
    devices = [
        {"name": one, "taints": [{"key": "k", "effect": effect, "timeAdded": TAINT.time_added}]}
        for one, effect in tainted.items()
    ]
    pool = {"name": "p", "generation": generation}
    spec = {"driver": "drv", "pool": pool, "devices": devices}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, ResourceSlice)


def test_only_the_latest_generation_of_a_pool_counts() -> None:
    taints = Taints()
    assert taints.put(slice_of("one", 1, d="NoExecute", e="NoSchedule"))
    assert not taints.put(slice_of("one", 1, d="NoExecute", e="NoSchedule"))
    assert taints.eviction_of(claim("p")) == Eviction(after(0))
    assert taints.put(slice_of("two", 2, e="NoExecute"))
    assert taints.eviction_of(claim("p")) is None
    assert taints.eviction_of(claim("p", devices=("d", "e"))) == Eviction(after(0))
    assert taints.published(rule(driver="drv")) == 1
    assert taints.drop(slice_of("two", 2))
    assert not taints.drop(slice_of("two", 2))
    assert taints.eviction_of(claim("p")) == Eviction(after(0))
    assert taints.drop(slice_of("one", 1))
    assert taints.pools == {}


class Counted(tuple[Any, ...]):
    """Devices that count how often they are looked at."""

    looks = 0

    def __iter__(self) -> Any:
        Counted.looks += 1
        return super().__iter__()


def test_a_changed_slice_of_a_large_pool_does_not_cost_looking_at_the_others() -> None:
    taints, slices = Taints(), 50
    for number in range(slices):
        one = slice_of(f"s{number}", 1, **{f"d{number}": "NoExecute"})
        spec = msgspec.structs.replace(one.spec, devices=Counted(one.spec.devices))
        assert taints.put(msgspec.structs.replace(one, spec=spec))
    assert Counted.looks == slices
    assert taints.eviction_of(claim("p", devices=("d0", "d49"))) == Eviction(after(0))
    assert taints.published(rule(driver="drv")) == slices


names = st.sampled_from([None, "a", "b"])
selectors = st.one_of(st.none(), st.fixed_dictionaries({"driver": names, "pool": names, "device": names}))
steps = st.lists(st.tuples(st.sampled_from("rst"), st.booleans(), selectors), max_size=20)


@given(steps)
def test_the_rules_of_a_device_are_those_that_select_it(steps: list[tuple[str, bool, Any]]) -> None:
    """However they are added, replaced and removed."""
    rules, present = Rules(), dict[str, DeviceTaintRule]()
    for name, added, selector in steps:
        if added:
            doc = {"metadata": {"name": name}, "spec": {"deviceSelector": selector}}
            present[name] = msgspec.convert(doc, DeviceTaintRule)
            rules.put(present[name])
        else:
            assert rules.pop(name) is present.pop(name, None)
        for driver, pool, device_name in itertools.product("ab", repeat=3):
            one = AllocatedDevice(driver=driver, pool=pool, device=device_name)
            found = {found.name for found in rules.of(one)}
            assert found == {each.name for each in present.values() if selects(each, one)}
    for name in list(present):
        rules.pop(name)
    assert not any(vars(rules).values())
