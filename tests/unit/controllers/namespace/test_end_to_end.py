"""The controller in a whole sandbox, on virtual time: pods are deleted first, then the rest, then the namespace."""

import json
import random
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.rest.transport import Request, Response, Transport
from tests.kit.controlling import Faulty, controllers
from tests.kit.faults import Meanwhile, Noting, Refusing, Rewriting, refusal
from tests.kit.world import PODS, World, resource

NAMESPACES = resource("namespaces", namespaced=False)
CONFIG_MAPS = resource("configmaps")
SECRETS = resource("secrets")
SERVICE_ACCOUNTS = resource("serviceaccounts")
POD = {"containers": [{"name": "c", "image": "i"}]}


class Story:
    """A namespace ``doomed`` and the questions of the tests."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(self, transport: Transport | None = None, **options: Any) -> Any:
        config = NamespaceConfig()
        return controllers(self.world, config, names=["namespace-controller"], transport=transport, **options)

    async def make(self, **metadata: Any) -> None:
        """The namespace with two ConfigMaps and a Secret."""
        await self.world.create(NAMESPACES, {"metadata": {"name": "doomed", **metadata}})
        await self.world.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "doomed")
        for name in ("a", "b"):
            await self.put(CONFIG_MAPS, name)
        await self.put(SECRETS, "s")

    async def put(self, kind: Any, name: str, **metadata: Any) -> None:
        await self.world.create(kind, {"metadata": {"name": name, **metadata}}, "doomed")

    async def pod(self, name: str, **spec: Any) -> None:
        await self.world.create(PODS, {"metadata": {"name": name}, "spec": POD | spec}, "doomed")

    async def doom(self) -> None:
        await self.world.delete(NAMESPACES, "doomed")

    async def names(self, kind: Any) -> list[str]:
        items = await self.world.items(kind, "doomed")
        return [item["metadata"]["name"] for item in items]

    async def is_deleted(self) -> bool:
        return await self.world.is_deleted("doomed", NAMESPACES)

    async def wrong(self) -> dict[str, str]:
        """Messages of the conditions that are true."""
        status = (await self.world.get(NAMESPACES, "doomed"))["status"]
        assert status["phase"] == "Terminating"
        return {c["type"]: c["message"] for c in status.get("conditions", []) if c["status"] == "True"}


@pytest.fixture
def story(world: World) -> Story:
    return Story(world)


@pytest.mark.parametrize("odd", [{"spec": "none"}, {"metadata": {"labels": [5]}}], ids=["content", "metadata"])
async def test_objects_that_cannot_be_decoded_are_deleted(world: World, story: Story, odd):
    """Only names and finalizers are needed, and of pods how long those take that can be decoded."""
    seen: list[str] = []

    def edit(request: Request, response: Response) -> Response:
        if request.method != "GET" or not request.path.startswith("/api/v1/namespaces/doomed/"):
            return response
        page = json.loads(response.body)
        for item in page.get("items") or []:
            seen.append(item["metadata"]["name"])
            for name, value in odd.items():
                item[name] = {**item[name], **value} if isinstance(value, dict) else value
        return Response(200, response.headers, json.dumps(page).encode())

    async with story.running(Rewriting(world.server.transport(), edit)):
        await story.make()
        await story.pod("p")
        await story.put(CONFIG_MAPS, "held", finalizers=["example.com/wait"])
        await world.wait(5)
        await story.doom()
        await world.wait(90)
        assert "p" in seen
        assert "example.com/wait" in (await story.wrong())["NamespaceFinalizersRemaining"]
        await world.patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "doomed")
        await world.wait(90)
        assert await story.is_deleted()


async def test_only_objects_of_the_namespace_are_deleted(world: World, story: Story):
    await world.create(CONFIG_MAPS, {"metadata": {"name": "mine"}})
    async with story.running():
        await story.make()
        await world.wait(5)
        await story.doom()
        await world.wait(4)
        assert await story.names(CONFIG_MAPS) == ["a", "b"]  # API servers are given time to notice
        await world.wait(10)
        assert await story.is_deleted()
        await world.get(CONFIG_MAPS, "mine")


@pytest.mark.parametrize(("end", "left"), [("/pods", ["a", "b"]), ("/configmaps/a", ["b"])], ids=["kinds", "objects"])
async def test_a_namespace_that_is_made_again_during_a_pass_keeps_its_content(world: World, story: Story, end, left):
    """Someone has finalized the first one by hand, as people do with namespaces that hang. What is under way
    arrives."""

    async def again() -> None:
        namespace = await world.get(NAMESPACES, "doomed")
        finalized = namespace | {"spec": {"finalizers": []}}
        await world.client.update(NAMESPACES, "", "doomed", finalized, subresource="finalize")
        assert await story.is_deleted()
        for kind in (SERVICE_ACCOUNTS, CONFIG_MAPS, SECRETS):
            await world.client.delete_collection(kind, "doomed")
        await story.make()
        await world.wait(1)

    def refuse(request: Request) -> Response | None:
        collection = request.method == "DELETE" and request.path.endswith("/configmaps")
        return refusal(405, "MethodNotAllowed") if collection else None

    transport = Meanwhile(Rewriting(world.server.transport(), answer=refuse), "DELETE", end, again)
    async with story.running(transport):
        await story.make()
        await world.wait(5)
        await story.doom()
        await world.wait(400)
    assert transport.happened
    assert await story.names(CONFIG_MAPS) == left
    assert (await world.get(NAMESPACES, "doomed"))["status"]["phase"] == "Active"


async def test_the_rate_limit_of_other_controllers_does_not_apply(world: World):
    took: dict[bool, float] = {}
    for limited in (False, True):
        story = Story(world)
        await story.make()
        await story.doom()
        started = world.clock.monotonic()
        async with story.running(limited=limited):
            while not await story.is_deleted():
                await world.wait(0.1)
        took[limited] = world.clock.monotonic() - started
    assert took[True] < took[False] + 1, took


async def test_pods_are_deleted_first(world: World, story: Story):
    async with story.running():
        await story.make()
        await story.pod("p", terminationGracePeriodSeconds=60)
        await world.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/wait"]}}, "doomed")
        await world.wait(10)
        await story.doom()
        await world.wait(120)
        assert await story.names(PODS) == ["p"]
        assert await story.names(CONFIG_MAPS) == ["a", "b"]
        assert await story.wrong() == {}
        await world.patch(PODS, "p", {"metadata": {"finalizers": None}}, "doomed")
        await world.wait(120)
        assert await story.is_deleted()


@pytest.mark.parametrize("ordered", [True, False])
async def test_pods_are_not_deleted_first_without_the_gate(world: World, story: Story, ordered):
    gates = [("", f"OrderedNamespaceDeletion={str(ordered).lower()}")]
    async with story.running(gates=gates, emulated="1.33"):
        await story.make()
        await story.pod("p")
        await world.patch(PODS, "p", {"metadata": {"finalizers": ["example.com/wait"]}}, "doomed")
        await story.doom()
        await world.wait(30)
        assert await story.names(PODS) == ["p"]
        assert await story.names(CONFIG_MAPS) == (["a", "b"] if ordered else [])


async def test_one_pass_sends_each_request_once(world: World, story: Story):
    """Pods are listed to estimate their time. All deletions are in the background, all other lists of metadata only."""
    await story.make()
    await story.doom()
    noting = Noting(world.server.transport())
    async with story.running(noting):
        await world.wait(10)
        assert await story.is_deleted()
    sent = [request for request in noting.sent if "/namespaces/doomed/" in request.path]
    kinds = {request.path for request in sent if request.path.count("/doomed/") and request.method == "DELETE"}
    assert {path.rpartition("/")[2] for path in kinds} > {"pods", "configmaps", "secrets", "leases"}
    deleted = [request for request in sent if request.method == "DELETE"]
    assert all(json.loads(request.body)["propagationPolicy"] == "Background" for request in deleted)
    whole = [r.path for r in sent if r.method == "GET" and "PartialObjectMetadataList" not in r.headers["accept"]]
    assert whole == ["/api/v1/namespaces/doomed/pods"]
    requests = Counter((request.method, request.path) for request in sent if request.path not in whole)
    assert set(requests.values()) == {1}


async def test_the_phase_is_written_if_the_api_server_did_not_set_it(world: World, story: Story):
    def edit(request: Request, response: Response) -> Response:
        if request.method != "GET" or request.path != "/api/v1/namespaces/doomed":
            return response
        doc = json.loads(response.body)
        doc["status"]["phase"] = "Active"
        return Response(200, response.headers, json.dumps(doc).encode())

    noting = Noting(world.server.transport())
    async with story.running(Rewriting(noting, edit)):
        await story.make()
        await story.doom()
        await world.wait(30)
        assert await story.is_deleted()
    first = next(one for one in noting.sent if one.path == "/api/v1/namespaces/doomed/status")
    assert json.loads(first.body)["status"]["phase"] == "Terminating"


async def test_a_namespace_with_another_finalizer_is_emptied_at_each_resync(world: World, story: Story):
    """Other clients may have created objects in it before all API servers noticed its deletion."""
    await story.make(finalizers=["example.com/wait"])
    await story.doom()
    noting = Noting(world.server.transport())
    async with story.running(noting):
        await world.wait(100)
        noting.sent.clear()
        await world.wait(300)
        assert noting.paths("GET").count("/api/v1/namespaces/doomed") == 1


async def test_remaining_content_is_a_condition(world: World, story: Story):
    async with story.running():
        await story.make()
        await story.put(CONFIG_MAPS, "held", finalizers=["example.com/wait"])
        await story.put(SECRETS, "too", finalizers=["example.com/wait", "example.com/more"])
        await story.doom()
        await world.wait(60)
        assert await story.wrong() == {
            "NamespaceContentRemaining": "Some resources are remaining: configmaps. has 1 resource instances,"
            " secrets. has 1 resource instances",
            "NamespaceFinalizersRemaining": "Some content in the namespace has finalizers remaining:"
            " example.com/more in 1 resource instances, example.com/wait in 2 resource instances",
        }
        for kind, name in ((CONFIG_MAPS, "held"), (SECRETS, "too")):
            await world.patch(kind, name, {"metadata": {"finalizers": None}}, "doomed")
        await world.wait(20)
        assert await story.is_deleted()


async def test_a_failed_kind_is_reported_and_the_others_are_deleted(world: World, story: Story):
    broken = [True]

    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == "DELETE" and request.path.endswith("/doomed/secrets"):
            return refusal(403, "Forbidden", "not yours")
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await story.doom()
        await world.wait(30)
        message = "Failed to delete all resource types, 1 remaining: not yours"
        assert await story.wrong() == {"NamespaceDeletionContentFailure": message}
        assert await story.names(CONFIG_MAPS) == []
        broken[0] = False
        await world.wait(61)
        assert await story.is_deleted()


async def test_remaining_objects_without_finalizers_are_an_error(world: World, story: Story):
    broken = [True]

    def answer(request: Request) -> Response | None:
        if broken[0] and request.method == "DELETE" and request.path.endswith("/doomed/secrets"):
            return Response(200, {"content-type": "application/json"}, b'{"kind": "SecretList", "items": []}')
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await story.doom()
        await world.wait(30)
        unexpected = "unexpected items still remain in namespace: doomed for gvr: /v1, Resource=secrets"
        assert await story.wrong() == {
            "NamespaceDeletionContentFailure": f"Failed to delete all resource types, 1 remaining: {unexpected}",
            "NamespaceContentRemaining": "Some resources are remaining: secrets. has 1 resource instances",
        }
        broken[0] = False
        await world.wait(61)
        assert await story.is_deleted()


async def test_failed_passes_are_retried_ever_more_rarely(world: World, story: Story):
    """After 0.25, 0.5, 1, 2 and 4 s."""
    at: list[float] = []

    async def before(request: Request) -> None:
        if request.method == "DELETE" and request.path.endswith("/doomed/configmaps"):
            at.append(world.clock.monotonic())

    refusing = Refusing(world.server.transport(), lambda request: request.path.endswith("/doomed/secrets"), before)
    async with story.running(refusing):
        await story.make()
        await story.doom()
        await world.wait(13)
        assert [round(later - earlier, 2) for earlier, later in pairwise(at)] == [0.25, 0.5, 1, 2, 4]


@pytest.mark.parametrize("status", [404, 405])
async def test_a_kind_without_collections_is_deleted_one_by_one(world: World, story: Story, status):
    refused = []

    def answer(request: Request) -> Response | None:
        if request.method == "DELETE" and request.path.endswith("/doomed/configmaps"):
            refused.append(request.path)
            return refusal(status, "NotFound" if status == 404 else "MethodNotAllowed")
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await story.doom()
        await world.wait(30)
        assert refused
        assert await story.is_deleted()


def stale(request: Request, response: Response) -> Response:
    doc = json.loads(response.body)
    for group in doc["items"]:
        if group["metadata"].get("name") == "apps":
            group["versions"] = [{"version": "v1", "freshness": "Stale"}]
    return Response(response.status, response.headers, json.dumps(doc).encode())


async def test_failed_discovery_of_groups_keeps_the_namespace(world: World, story: Story):
    broken = [True]

    def edit(request: Request, response: Response) -> Response:
        return stale(request, response) if broken[0] and request.path == "/apis" else response

    async with story.running(Rewriting(world.server.transport(), edit)):
        await story.make()
        await story.doom()
        await world.wait(30)
        assert await story.wrong() == {
            "NamespaceDeletionDiscoveryFailure": "Discovery failed for some groups, 1 failing: unable to retrieve"
            " the complete list of server APIs: apps/v1: stale GroupVersion discovery: apps/v1"
        }
        assert await story.names(CONFIG_MAPS) == []
        broken[0] = False
        await world.wait(61)
        assert await story.is_deleted()


async def test_failed_discovery(world: World, story: Story):
    broken = [True]
    transport = Refusing(world.server.transport(), lambda r: broken[0] and r.path in ("/api", "/apis"))
    async with story.running(transport):
        await story.make()
        await story.doom()
        await world.wait(30)
        assert await story.wrong() == {"NamespaceDeletionDiscoveryFailure": "the connection was lost"}
        assert await story.names(CONFIG_MAPS) == ["a", "b"]
        broken[0] = False
        await world.wait(61)
        assert await story.is_deleted()


async def test_failed_writes_of_conditions_do_not_keep_the_namespace(world: World, story: Story):
    refused = []

    def answer(request: Request) -> Response | None:
        if request.path.endswith("/doomed/status") and b'"conditions"' in request.body:
            refused.append(request.path)
            return refusal(403, "Forbidden")
        return None

    async with story.running(Rewriting(world.server.transport(), answer=answer)):
        await story.make()
        await story.doom()
        await world.wait(30)
        assert refused
        assert await story.is_deleted()


async def test_other_finalizers_are_kept(world: World, story: Story):
    await story.make()
    namespace = await world.get(NAMESPACES, "doomed")
    namespace["spec"]["finalizers"] = ["example.com/mine", "kubernetes"]
    await world.client.update(NAMESPACES, "", "doomed", namespace, subresource="finalize")
    async with story.running():
        await story.doom()
        await world.wait(30)
        namespace = await world.get(NAMESPACES, "doomed")
        assert namespace["spec"]["finalizers"] == ["example.com/mine"]
        assert await story.names(CONFIG_MAPS) == []
        namespace["spec"]["finalizers"] = []
        await world.client.update(NAMESPACES, "", "doomed", namespace, subresource="finalize")
        await world.wait(30)
        assert await story.is_deleted()


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers(world: World, story: Story, seed):
    faulty = Faulty(world.server.transport(), random.Random(seed + 10), 0.1)
    async with story.running(transport=faulty):
        await story.make()
        await story.pod("p", terminationGracePeriodSeconds=5)
        await world.wait(10)
        await story.doom()
        await world.wait(3600)
        assert faulty.faults
        assert await story.is_deleted()
