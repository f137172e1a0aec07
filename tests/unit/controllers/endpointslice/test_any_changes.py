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

LIMIT, NUMBERS = 3, 7
NAMES = ("endpoints-controller", "endpointslice-controller")
Doc = dict[str, Any]


class Story:
    """A Service ``web``, pods ``p0`` to ``p6``, and what happens. Each step has a number: which pod or slice."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._addresses = 0

    def running(self, transport: Transport | None = None) -> Any:
        configs = EndpointsConfig(), EndpointSliceConfig(max_endpoints_per_slice=LIMIT)
        return controllers(self.world, *configs, names=NAMES, transport=transport)

    async def prepare(self) -> None:
        for name in ("n0", "n1"):
            await self.world.create(NODES, {"metadata": {"name": name}})
        await self._make_service()

    async def step(self, name: str, number: int) -> None:
        """Raises AttributeError for a name that is no step."""
        await getattr(self, f"step_{name}")(number)

    # -- time

    async def step_wait(self, number: int) -> None:
        await self.world.wait((0.01, 0.2, 1, 1.5, 3, 5, 30)[number])

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

    async def step_empty(self, number: int) -> None:
        await self._patch_slice(number, {"endpoints": []})

    async def step_confuse(self, number: int) -> None:
        """A slice gets the endpoints of another one."""
        others = await self.slices()
        if others:
            await self._patch_slice(number, {"endpoints": others[0].get("endpoints") or []})

    async def step_note(self, number: int) -> None:
        await self._patch_slice(number, {"metadata": {"annotations": {"own": f"{number}"}, "labels": {"own": "x"}}})

    async def step_unlabel(self, number: int) -> None:
        await self._patch_slice(number, {"metadata": {"labels": {SERVICE_NAME: None}}})

    async def step_take(self, number: int) -> None:
        """Another manager has the slice from now on."""
        await self._patch_slice(number, {"metadata": {"labels": {MANAGED_BY: "me"}}})

    async def step_hold(self, number: int) -> None:
        """A slice that is deleted stays as long as it has the finalizer."""
        await self._patch_slice(number, {"metadata": {"finalizers": ["example.com/wait"]}})

    async def step_drop(self, number: int) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            await self.world.delete(ENDPOINT_SLICES, slice_["metadata"]["name"])

    async def step_copy(self, number: int) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            meta = {key: slice_["metadata"][key] for key in ("labels", "ownerReferences") if key in slice_["metadata"]}
            copy = {key: value for key, value in slice_.items() if key in ("addressType", "endpoints", "ports")}
            await self.world.create(ENDPOINT_SLICES, {"metadata": {"generateName": "copy-", **meta}, **copy})

    async def step_forge(self, number: int) -> None:
        """A slice that nobody owns, with an address that no pod has."""
        meta = {"generateName": "forged-", "labels": {SERVICE_NAME: "web", MANAGED_BY: MANAGER}}
        endpoints = [{"addresses": [f"10.2.0.{number + 1}"], "conditions": {"ready": True}}]
        await self.world.create(
            ENDPOINT_SLICES, {"metadata": meta, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 80}]}
        )

    async def step_lose(self, number: int) -> None:
        """The Endpoints."""
        if not await self.world.is_deleted("web", ENDPOINTS):
            await self.world.delete(ENDPOINTS, "web")

    # -- what there is

    async def slices(self) -> list[Doc]:
        """The slices of the Service, but those that are being deleted."""
        found = await self.world.items(ENDPOINT_SLICES)
        own = {SERVICE_NAME: "web", MANAGED_BY: MANAGER}.items()
        return [
            one
            for one in found
            if own <= one["metadata"].get("labels", {}).items() and "deletionTimestamp" not in one["metadata"]
        ]

    async def versions(self) -> dict[str, str]:
        found = [*await self.world.items(ENDPOINT_SLICES), *await self.world.items(ENDPOINTS)]
        return {each["metadata"]["uid"]: each["metadata"]["resourceVersion"] for each in found}

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

    async def _slice(self, number: int) -> Doc | None:
        found = await self.slices()
        return found[number % len(found)] if found else None

    async def _patch_slice(self, number: int, body: Doc) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            await self.world.patch(ENDPOINT_SLICES, slice_["metadata"]["name"], body)


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
OTHERS = ("empty", "confuse", "note", "unlabel", "take", "hold", "drop", "copy", "forge", "lose")
numbers = st.integers(0, NUMBERS - 1)
names = st.one_of(*map(st.sampled_from, (("add",), ("wait",), POD_STEPS, SERVICE_STEPS, OTHERS)))
steps = st.tuples(names, numbers)
last_steps = st.lists(st.tuples(st.sampled_from((*POD_STEPS, *SERVICE_STEPS, *OTHERS)), numbers), max_size=2)


@settings(max_examples=25)
@given(st.lists(steps, min_size=5, max_size=40), last_steps, st.integers(0, 1000))
async def test_at_rest_slices_are_the_pods(certificates: Certificates, history, last, seed):
    async with running_world(certificates, alone=True) as world:
        story = Story(world)
        await story.prepare()
        late = Late(world.server.transport(), world.clock, random.Random(seed))
        async with story.running(late):
            for name, number in history:
                await story.step(name, number)
            late.steady()
            await world.wait(1500)
            await story.check()
            for name, number in last:
                await story.step(name, number)
            await world.wait(60)
            await story.check()
        async with story.running():
            await world.wait(60)
            await story.check()
            await story.check_labels()
            before = await story.versions()
        async with story.running():
            await world.wait(60)
            assert await story.versions() == before
