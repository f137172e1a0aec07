"""The controller in a whole sandbox, on virtual time; the test stands in for the driver and the scheduler."""

import json
from typing import Any

import pytest

from kcm_cli.api.devices import DEVICE_TAINT_RULES
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.device_taint_eviction.config import DeviceTaintEvictionConfig
from kcm_cli.rest.transport import Request
from tests.unit.controllers.alpha import make, serve
from tests.unit.controllers.controlling import controllers
from tests.unit.controllers.devices import DRIVER, SLICES, allocate, by_name, make_claim
from tests.unit.controllers.faults import Refusing
from tests.unit.sandbox.nodes.world import PODS, World

RULES = [("", "DRADeviceTaintRules=true")]
NAME = "device-taint-eviction-controller"
EVICTED = ("DeviceTaintManagerEviction", "Marking for deletion")


def running(world: World, **options: Any) -> Any:
    return controllers(world, DeviceTaintEvictionConfig(), names=[NAME], **options)


async def publish(world: World, *tainted: str) -> None:
    """Two devices; those that are named have a NoExecute taint from now on."""
    taint = {"key": "broken", "effect": "NoExecute"}
    devices = [{"name": name} | ({"taints": [taint]} if name in tainted else {}) for name in ("d0", "d1")]
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "nodeName": "node-1", "devices": devices}
    if await world.gone("s", SLICES):
        await world.create(SLICES, {"metadata": {"name": "s"}, "spec": spec})
    else:
        doc = await world.get(SLICES, "s")
        await world.client.update(SLICES, "", "s", doc | {"spec": spec})


async def use(world: World, pod: str, device: str = "d0", **result: Any) -> None:
    """A running pod with a claim of its name."""
    await make_claim(world, pod)
    await world.pod(pod, by_name(pod) | {"nodeName": "node-1", "terminationGracePeriodSeconds": 1})
    await allocate(world, pod, pod, device=device, **result)


async def marked(world: World, pod: str) -> int:
    """How often it was said that a pod is deleted, or not."""
    return len([event for event in await world.events(pod) if event[0] == EVICTED[0]])


def rule(effect: str = "NoExecute", time: str = "2026-01-01T00:00:00Z", name: str = "r") -> dict[str, Any]:
    taint = {"key": "k", "effect": effect, "timeAdded": time}
    return {"metadata": {"name": name}, "spec": {"deviceSelector": {"driver": DRIVER}, "taint": taint}}


async def told(world: World) -> tuple[str, str, str]:
    doc = await world.get(DEVICE_TAINT_RULES, "r", "")
    (found,) = doc.get("status", {}).get("conditions", [{}])
    return found.get("status", ""), found.get("reason", ""), found.get("message", "")


def test_the_pod_of_a_tainted_device_is_evicted(play):
    async def life(world: World) -> None:
        registry = Registry()
        conditions: list[dict[str, Any]] = []

        async def keep(request: Request) -> None:
            if request.method == "PATCH" and request.path.endswith("/pods/p/status"):
                conditions.extend(json.loads(request.body)["status"]["conditions"])

        await publish(world)
        await use(world, "p", "d0")
        await use(world, "q", "d1")
        transport = Refusing(world.server.transport(), lambda request: False, keep)
        async with running(world, metrics=registry, transport=transport):
            await world.wait(5)
            await publish(world, "d0")
            await world.wait(5)
            assert await world.gone("p") and not await world.gone("q")
            text = "Device Taint manager: deleting due to NoExecute taint"
            (found,) = conditions
            assert (found["reason"], found["message"]) == ("DeletionByDeviceTaintManager", text)
            assert (found["type"], found["status"]) == ("DisruptionTarget", "True")
            assert "observedGeneration" not in found
            assert EVICTED in await world.events("p") and not await marked(world, "q")
            shown = registry.expose().decode()
            assert "device_taint_eviction_controller_pod_deletions_total 1" in shown
            assert "device_taint_eviction_controller_pod_deletion_duration_seconds_count 1" in shown

    play(life)


TOLERATION = {"operator": "Exists", "effect": "NoExecute", "key": "broken"}


@pytest.mark.parametrize(
    ("seconds", "gone"), [pytest.param(None, False, id="for ever"), pytest.param(60, True, id="for a time")]
)
def test_pods_with_tolerations_are_not_evicted(play, seconds, gone):
    async def life(world: World) -> None:
        toleration = TOLERATION | ({} if seconds is None else {"tolerationSeconds": seconds})
        await publish(world)
        await use(world, "p", tolerations=[toleration])
        async with running(world):
            await publish(world, "d0")
            await world.wait(55)
            assert not await world.gone("p")
            await world.wait(15)
            assert await world.gone("p") is gone

    play(life)


def test_a_taint_removed_in_time_evicts_nothing(play):
    async def life(world: World) -> None:
        await publish(world)
        await use(world, "p", tolerations=[TOLERATION | {"tolerationSeconds": 60}])
        async with running(world):
            await publish(world, "d0")
            await world.wait(30)
            await publish(world)
            await world.wait(60)
            assert not await world.gone("p")
            assert ("DeviceTaintManagerEviction", "Cancelling deletion") in await world.events("p")

    play(life)


def test_a_failed_deletion_is_retried(play):
    async def life(world: World) -> None:
        await publish(world, "d0")
        await use(world, "p")
        broken = [True]
        transport = Refusing(world.server.transport(), lambda request: broken[0] and request.method == "DELETE")
        async with running(world, transport=transport):
            await world.wait(10)
            assert transport.refused > 1 and not await world.gone("p")
            broken[0] = False
            await world.wait(60)
            assert await world.gone("p")

    play(life)


def test_a_new_pod_of_the_evicted_ones_name_is_kept(play):
    async def life(world: World) -> None:
        await publish(world)
        await use(world, "p", tolerations=[TOLERATION | {"tolerationSeconds": 30}])
        async with running(world):
            await publish(world, "d0")
            await world.wait(10)
            await world.delete(PODS, "p", grace_s=0)
            await world.pod("p", {"nodeName": "node-1"})
            await world.wait(60)
            assert not await world.gone("p") and not await marked(world, "p")

    play(life)


def test_a_rule_evicts_and_reports_its_progress(play):
    async def life(world: World) -> None:
        await serve(world, DEVICE_TAINT_RULES, status={})
        await publish(world)
        await use(world, "p")
        await use(
            world, "q", "d1", tolerations=[{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}]
        )
        async with running(world, gates=RULES):
            await make(world, DEVICE_TAINT_RULES, rule(time="2026-01-01T00:01:00Z"))
            await world.wait(2)
            assert await told(world) == ("True", "PodsPendingEviction", "2 pods need to be evicted in 1 namespace.")
            await world.wait(70)
            assert await world.gone("p")
            text = "1 pod needs to be evicted in 1 namespace. 1 pod evicted since starting the controller."
            assert await told(world) == ("True", "PodsPendingEviction", text)
            await world.wait(320)
            assert await world.gone("q")
            text = "2 pods evicted since starting the controller."
            assert await told(world) == ("False", "Completed", text)

    play(life)


def test_a_rule_with_effect_none_reports_what_it_would_evict(play):
    async def life(world: World) -> None:
        await serve(world, DEVICE_TAINT_RULES, status={})
        await publish(world)
        await use(world, "p")
        async with running(world, gates=RULES):
            await make(world, DEVICE_TAINT_RULES, rule("None"))
            await world.wait(5)
            status, reason, text = await told(world)
            assert (status, reason) == ("False", "NoEffect")
            what = "2 published devices selected. 1 allocated device selected. 1 pod would be evicted in 1 namespace "
            assert text.startswith(what)
            assert not await world.gone("p")
            await world.patch(DEVICE_TAINT_RULES, "r", {"spec": rule("NoExecute")["spec"]}, "")
            await world.wait(30)
            assert await world.gone("p")

    play(life)


def test_rules_do_nothing_without_their_gate(play):
    async def life(world: World) -> None:
        await serve(world, DEVICE_TAINT_RULES, status={})
        await publish(world)
        await use(world, "p")
        async with running(world):
            await make(world, DEVICE_TAINT_RULES, rule())
            await world.wait(30)
            assert not await world.gone("p")
            assert await told(world) == ("", "", "")

    play(life)
