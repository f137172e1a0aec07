"""Whatever pods, the Service and other clients do, with late news and lost answers: at rest the slices of a Service are
its pods, each once, and so are its Endpoints."""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.core import NODES, SERVICES
from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME
from kcm_cli.api.endpoints import ENDPOINTS
from kcm_cli.controllers.endpoints.config import EndpointsConfig
from kcm_cli.controllers.endpointslice.config import EndpointSliceConfig
from kcm_cli.controllers.endpointslice.plan import MANAGER
from kcm_cli.planning.actions import MERGE
from kcm_cli.rest.transport import Transport
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import controllers
from tests.kit.faults import Late
from tests.kit.world import PODS, World, running_world
from tests.unit.controllers.endpointslice.meddling import NUMBERS, OTHERS, Meddling

LIMIT = 3
NAMES = ("endpoints-controller", "endpointslice-controller")
Doc = dict[str, Any]


class Story(Meddling):
    """A Service ``web``, pods ``p0`` to ``p6``, and what happens. Each step has a number: which pod or slice."""

    def __init__(self, world: World) -> None:
        super().__init__(world, MANAGER)
        self._addresses = 0

    def running(self, transport: Transport | None = None) -> Any:
        configs = EndpointsConfig(), EndpointSliceConfig(max_endpoints_per_slice=LIMIT)
        return controllers(self.world, *configs, names=NAMES, transport=transport)

    async def prepare(self) -> None:
        for name in ("n0", "n1"):
            await self.world.create(NODES, {"metadata": {"name": name}})
        await self._make_service()

    # -- pods

    async def step_add(self, number: int) -> None:
        if await self._pod(number) is None:
            spec = {"labels": {"app": "web"}, "nodeName": f"n{number % 2}"}
            await self.world.pod(f"p{number}", spec)
            await self.step_move(number)
            await self._status(number, phase="Running", ready=number % 3 != 2)

    async def step_move(self, number: int) -> None:
        """To another address."""
        self._addresses += 1
        ip = f"10.1.{self._addresses // 250}.{self._addresses % 250 + 1}"
        await self._status(number, podIP=ip, podIPs=[{"ip": ip}])

    async def step_flip(self, number: int) -> None:
        pod = await self._pod(number)
        if pod is not None:
            await self._status(number, ready=not is_ready(pod))

    async def step_end(self, number: int) -> None:
        await self._status(number, phase=("Succeeded", "Failed")[number % 2])

    async def step_leave(self, number: int) -> None:
        """Or join."""
        pod = await self._pod(number)
        if pod is not None:
            other = {"web": "db", "db": "web"}[pod["metadata"]["labels"]["app"]]
            await self.world.patch(PODS, f"p{number}", {"metadata": {"labels": {"app": other}}})

    async def step_terminate(self, number: int) -> None:
        if await self._pod(number) is not None:
            await self.world.delete(PODS, f"p{number}")

    async def step_remove(self, number: int) -> None:
        if await self._pod(number) is not None:
            await self.world.delete(PODS, f"p{number}", grace_s=0)

    async def step_replace(self, number: int) -> None:
        """As a StatefulSet does."""
        await self.step_remove(number)
        await self.step_add(number)

    # -- the Service

    async def step_select(self, number: int) -> None:
        await self._service({"selector": {"app": ("web", "db")[number % 2]}})

    async def step_ports(self, number: int) -> None:
        await self._service({"ports": [{"port": 80 + number % 2, "protocol": "TCP"}]})

    async def step_publish(self, number: int) -> None:
        await self._service({"publishNotReadyAddresses": bool(number % 2)})

    async def step_label(self, number: int) -> None:
        await self.world.patch(SERVICES, "web", {"metadata": {"labels": {"number": f"{number}"}}})

    async def step_renew(self, number: int) -> None:
        """Delete the Service and create it again."""
        await self.world.delete(SERVICES, "web")
        await self._make_service()

    # -- other clients

    async def step_lose(self, number: int) -> None:
        """The Endpoints."""
        if not await self.world.is_deleted("web", ENDPOINTS):
            await self.world.delete(ENDPOINTS, "web")

    # -- what there is to be

    async def check(self) -> None:
        service = await self.world.get(SERVICES, "web")
        spec, (port,) = service["spec"], service["spec"]["ports"]
        publishes = bool(spec.get("publishNotReadyAddresses"))
        pods = [
            pod
            for pod in await self.world.items(PODS)
            if pod["metadata"]["labels"]["app"] == spec["selector"]["app"]
            and pod["status"]["phase"] not in ("Succeeded", "Failed")
            and pod["status"].get("podIP")
        ]
        slices = await self.slices()
        assert Counter(as_endpoint(one) for slice_ in slices for one in slice_.get("endpoints") or ()) == Counter(
            wanted(pod, publishes=publishes) for pod in pods
        )
        assert max(len(slice_.get("endpoints") or ()) for slice_ in slices) <= LIMIT
        for slice_ in slices:
            if slice_.get("endpoints"):
                assert [one["port"] for one in slice_["ports"]] == [port["port"]]
                (owner,) = slice_["metadata"]["ownerReferences"]
                assert owner["uid"] == service["metadata"]["uid"]
        here = [pod for pod in pods if publishes or "deletionTimestamp" not in pod["metadata"]]
        subsets = (await self.world.get(ENDPOINTS, "web")).get("subsets") or []
        assert addresses(subsets, "addresses") == ips(pod for pod in here if publishes or is_ready(pod))
        assert addresses(subsets, "notReadyAddresses") == ips(pod for pod in here if not (publishes or is_ready(pod)))
        assert {one["port"] for subset in subsets for one in subset["ports"]} <= {port["port"]}

    async def check_labels(self) -> None:
        """Others' changes of labels alone make no sync necessary."""
        service = await self.world.get(SERVICES, "web")
        wanted = service["metadata"].get("labels", {}) | {SERVICE_NAME: "web", MANAGED_BY: MANAGER}
        assert all(slice_["metadata"]["labels"] == wanted for slice_ in await self.slices())

    # -- inside

    async def _make_service(self) -> None:
        spec = {"selector": {"app": "web"}, "ports": [{"port": 80}]}
        await self.world.create(SERVICES, {"metadata": {"name": "web"}, "spec": spec})

    async def _service(self, spec: Doc) -> None:
        await self.world.patch(SERVICES, "web", {"spec": spec})

    async def _pod(self, number: int) -> Doc | None:
        name = f"p{number}"
        return None if await self.world.is_deleted(name) else await self.world.get(PODS, name)

    async def _status(self, number: int, *, ready: bool | None = None, **status: Any) -> None:
        if ready is not None:
            status["conditions"] = [{"type": "Ready", "status": str(ready)}]
        if await self._pod(number) is not None:
            body = {"status": status}
            client = self.world.client
            await client.patch(PODS, "default", f"p{number}", body, content_type=MERGE, subresource="status")


def is_ready(pod: Doc) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or ())


def as_endpoint(endpoint: Doc) -> tuple[Any, ...]:
    conditions, target = endpoint["conditions"], endpoint.get("targetRef") or {}
    (address,) = endpoint["addresses"]
    states = (conditions.get("ready"), conditions.get("serving"), conditions.get("terminating"))
    return address, endpoint.get("nodeName"), target.get("name"), target.get("uid"), *states


def wanted(pod: Doc, *, publishes: bool) -> tuple[Any, ...]:
    """The endpoint of a pod."""
    meta, serving, terminating = pod["metadata"], is_ready(pod), "deletionTimestamp" in pod["metadata"]
    states = (publishes or (serving and not terminating), serving, terminating)
    return pod["status"]["podIP"], pod["spec"]["nodeName"], meta["name"], meta["uid"], *states


def addresses(subsets: Iterable[Doc], field: str) -> list[tuple[str, str]]:
    return sorted((one["ip"], one["targetRef"]["uid"]) for subset in subsets for one in subset.get(field) or ())


def ips(pods: Iterable[Doc]) -> list[tuple[str, str]]:
    return sorted((pod["status"]["podIP"], pod["metadata"]["uid"]) for pod in pods)


POD_STEPS = ("add", "move", "flip", "end", "leave", "terminate", "remove", "replace")
SERVICE_STEPS = ("select", "ports", "publish", "label", "renew")
ALL = (*POD_STEPS, *SERVICE_STEPS, *OTHERS, "lose")
STEPS = (*ALL, *("add", "wait") * 6)
USUAL = (("select", 0), *(("add", number) for number in range(5)))


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1), st.integers(5, 60))
async def test_at_rest_slices_are_the_pods(certificates: Certificates, seed, length):
    rng = random.Random(seed)
    async with running_world(certificates, alone=True) as world:
        story = Story(world)
        await story.prepare()
        late = Late(world.server.transport(), world.clock, random.Random(seed))
        async with story.running(late):
            for _ in range(length):
                await story.step(rng.choice(STEPS), rng.randrange(NUMBERS))
            late.steady()
            await world.wait(1500)
            await story.check()
            await story.tour(ALL, USUAL, rng)
        async with story.running():
            await world.wait(60)
            await story.check()
            await story.check_labels()
            before = await story.versions(ENDPOINT_SLICES, ENDPOINTS)
        async with story.running():
            await world.wait(60)
            assert await story.versions(ENDPOINT_SLICES, ENDPOINTS) == before
