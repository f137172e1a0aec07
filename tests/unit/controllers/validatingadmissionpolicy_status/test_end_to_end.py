"""The controller in a whole sandbox, on virtual time: policies get type-checking warnings by real schemas."""

import random
from typing import Any

import pytest

from kcm_cli.controllers.validatingadmissionpolicy_status.config import ValidatingAdmissionPolicyStatusConfig
from kcm_cli.rest.transport import Request, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Refusing
from tests.kit.widgets import serve_widgets
from tests.kit.world import World, resource

pytestmark = pytest.mark.cluster(alone=True)

POLICIES = resource("validatingadmissionpolicies", "admissionregistration.k8s.io", namespaced=False)


def running(world: World, transport: Transport | None = None) -> Any:
    names = ["validatingadmissionpolicy-status-controller"]
    return controllers(world, ValidatingAdmissionPolicyStatusConfig(), names=names, transport=transport)


async def add(
    world: World, *texts: str, name: str = "p", group: str = "apps", plural: str = "deployments", **more: Any
) -> None:
    rule = {"apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [plural]}
    validations = [{"expression": text} for text in texts]
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": validations, **more}
    await world.create(POLICIES, {"metadata": {"name": name}, "spec": spec})


async def status(world: World, name: str = "p") -> tuple[int, dict[str, str]]:
    found = (await world.get(POLICIES, name)).get("status") or {}
    listed = (found.get("typeChecking") or {}).get("expressionWarnings") or []
    return found.get("observedGeneration", 0), {item["fieldRef"]: item["warning"] for item in listed}


async def test_type_errors_are_warnings_until_they_are_fixed(world: World):
    async with running(world):
        await add(world, "object.spec.replicas > 1", "object.spec.replica > 1")
        await world.wait()
        generation, found = await status(world)
        text = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n"
        mark = " | object.spec.replica > 1\n | ...........^\n"
        assert (generation, found) == (1, {"spec.validations[1].expression": text + mark})
        await world.patch(POLICIES, "p", {"spec": {"validations": [{"expression": "object.spec.replicas > 1"}]}})
        await world.wait()
        assert await status(world) == (2, {})
        assert (await world.get(POLICIES, "p"))["status"]["typeChecking"] == {}


async def test_deep_fields_and_parameters(world: World):
    async with running(world):
        pod = "object.spec.template.spec"
        texts = (
            f"{pod}.containers.all(c, c.image.startsWith('x/') && c.ports.all(p, p.containerPort > 1))",
            f"{pod}.containers.all(c, c.image > 1)",
            "params.data['x'] == 1",
            "object.metadata.creationTimestamp < timestamp('2026-01-01T00:00:00Z')",
            "object.spec.strategy.rollingUpdate.maxSurge == 1",
        )
        await add(world, *texts, paramKind={"apiVersion": "v1", "kind": "ConfigMap"})
        await world.wait()
        _, found = await status(world)
        assert [*found] == ["spec.validations[1].expression", "spec.validations[2].expression"]


async def test_custom_kinds_defined_later_are_found(world: World):
    async with running(world):
        await add(world, "true")
        await world.wait()
        await serve_widgets(world)
        await add(world, "object.spec.nope == 1", name="q", group="example.com", plural="widgets")
        await world.wait(5)
        _, found = await status(world, "q")
        assert "Kind=Widget" in found["spec.validations[0].expression"]


async def test_a_checked_generation_is_not_checked_again(world: World):
    await add(world, "true")
    async with running(world):
        await world.wait()
    watched = Refusing(world.server.transport(), lambda request: request.method == "PATCH")
    async with running(world, watched):
        await world.patch(POLICIES, "p", {"metadata": {"labels": {"a": "b"}}})
        await world.wait(5)
        assert (watched.refused, await status(world)) == (0, (1, {}))


async def test_unavailable_schemas_are_requested_again(world: World):
    down = [True]

    def refuses(request: Request) -> bool:
        return down[0] and request.path.startswith("/openapi")

    async with running(world, Refusing(world.server.transport(), refuses)):
        await add(world, "object.nope == 1")
        await world.wait(10)
        assert await status(world) == (0, {})
        down[0] = False
        await world.wait(30)
        assert [*(await status(world))[1]] == ["spec.validations[0].expression"]


@pytest.mark.parametrize("seed", range(2))
async def test_lost_requests_and_answers(world: World, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed), 0.6)
    async with running(world, faulty):
        for number in range(5):
            await add(world, "object.nope == 1", name=f"p{number}")
        await world.wait(60)
        assert faulty.faults
        assert [len((await status(world, f"p{number}"))[1]) for number in range(5)] == [1] * 5
