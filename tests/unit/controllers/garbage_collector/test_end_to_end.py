"""The controller in a whole sandbox, on virtual time."""

import asyncio
import json
import logging
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kcm_cli.api.resource import Resource
from kcm_cli.component.clock import Clock
from kcm_cli.component.metrics import Registry
from kcm_cli.controllers.garbage_collector import controller, monitors
from kcm_cli.controllers.garbage_collector.config import GarbageCollectorConfig
from kcm_cli.controllers.replicaset.config import ReplicaSetConfig
from kcm_cli.machinery.recent import Recent
from kcm_cli.rest.transport import Around, Request, Response, Stream, Transport
from kcm_cli.runtime.informer import AnyInformer
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.controlling import Faulty, adds, controllers, metric
from tests.kit.faults import Held, Meanwhile, Noting, Refusing, Rewriting
from tests.kit.widgets import CRDS, WIDGETS, serve_widgets
from tests.kit.world import World, resource, running_world

pytestmark = pytest.mark.cluster(alone=True)

CONFIG_MAPS = resource("configmaps")
SECRETS = resource("secrets")
NAMESPACES = resource("namespaces", namespaced=False)
ROLES = resource("clusterroles", "rbac.authorization.k8s.io", namespaced=False)
REPLICA_SETS = resource("replicasets", "apps")
LABELS = {"app": "a"}
REPLICA_SET = {
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": LABELS},
        "template": {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
    }
}
NO_SUCH_KIND = {
    "kind": "Status",
    "apiVersion": "v1",
    "metadata": {},
    "status": "Failure",
    "message": "the server could not find the requested resource",
    "reason": "NotFound",
    "details": {},
    "code": 404,
}


class Story:
    """ConfigMaps with owner references, and those that remain."""

    def __init__(self, world: World) -> None:
        self.world = world

    def running(
        self,
        transport: Transport | None = None,
        config: GarbageCollectorConfig | None = None,
        metrics: Registry | None = None,
    ) -> Any:
        chosen, names = config or GarbageCollectorConfig(), ["garbage-collector-controller"]
        return controllers(self.world, chosen, names=names, transport=transport, metrics=metrics)

    async def make(
        self,
        name: str,
        *owners: dict[str, Any],
        kind: Resource[Any] = CONFIG_MAPS,
        namespace: str = "default",
        finalizers: tuple[str, ...] = (),
        body: dict[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Create an object; how others refer to it."""
        metadata = {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}
        await self.world.create(kind, {"metadata": metadata} | (body or {}), namespace)
        return await self.ref(name, kind, namespace)

    async def ref(self, name: str, kind: Resource[Any] = CONFIG_MAPS, namespace: str = "default") -> dict[str, Any]:
        made = await self.world.get(kind, name, namespace)
        return {
            "apiVersion": made["apiVersion"],
            "kind": made["kind"],
            "name": name,
            "uid": made["metadata"]["uid"],
        }

    def spoil(self, name: str) -> None:
        """Make a ReplicaSet one that cannot be decoded, as none but an older server or a broken disk does."""
        store = self.world.server.store
        (stored,) = (one for one in store.list(REPLICA_SETS.gvr, "default") if one.copy()["metadata"]["name"] == name)
        doc = stored.copy()
        odd = {**doc, "spec": "none"}
        store.update(REPLICA_SETS.gvr, "default", name, odd)

    async def let_go(self, name: str, kind: Resource[Any] = CONFIG_MAPS) -> None:
        await self.world.patch(kind, name, {"metadata": {"finalizers": None}})

    async def left(self, kind: Resource[Any] = CONFIG_MAPS, namespace: str = "default") -> dict[str, list[str]]:
        """The names of the remaining objects, with the names of their owners."""
        page = json.loads(await self.world.client.list_page(kind, namespace if kind.namespaced else ""))
        return {
            item["metadata"]["name"]: [ref["name"] for ref in item["metadata"].get("ownerReferences", [])]
            for item in page["items"]
        }

    async def is_deleted(self, name: str, kind: Resource[Any] = CONFIG_MAPS) -> bool:
        return await self.world.is_deleted(name, kind)


@pytest.fixture
def story(world: World) -> Story:
    """With nothing but the server: no nodes."""
    return Story(world)


def blocking(ref: dict[str, Any]) -> dict[str, Any]:
    return ref | {"blockOwnerDeletion": True}


async def test_background_deletion_deletes_all_dependents(story: Story):
    async with story.running():
        root = await story.make("root")
        child = await story.make("child", root)
        await story.make("grandchild", child)
        await story.make("stranger")
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Background")
        await story.world.wait(5)
        assert await story.left() == {"stranger": []}


async def test_foreground_deletion_waits_for_blocking_dependents(story: Story):
    async with story.running():
        root = await story.make("root")
        await story.make("blocks", blocking(root), finalizers=("example.com/wait",))
        await story.make("lets", root, finalizers=("example.com/wait",))
        await story.make("plain", blocking(root))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(30)
        assert set(await story.left()) == {"root", "blocks", "lets"}
        await story.let_go("blocks")
        await story.world.wait(30)
        assert set(await story.left()) == {"lets"}
        await story.let_go("lets")
        await story.world.wait(30)
        assert await story.left() == {}


async def test_a_dependent_that_owns_others_is_deleted_in_the_foreground_too(story: Story):
    async with story.running():
        root = await story.make("root")
        child = await story.make("child", blocking(root))
        await story.make("leaf", blocking(child), finalizers=("example.com/wait",))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(30)
        assert set(await story.left()) == {"root", "child", "leaf"}
        await story.let_go("leaf")
        await story.world.wait(30)
        assert await story.left() == {}


async def test_an_owner_waits_for_a_dependent_that_cannot_be_decoded(story: Story):
    """Its metadata can be read, also where another controller's cache has no object of it."""
    root = await story.make("root")
    finalizers = ("example.com/wait",)
    await story.make("blocks", blocking(root), kind=REPLICA_SETS, finalizers=finalizers, body=REPLICA_SET)
    story.spoil("blocks")
    names = ["garbage-collector-controller", "replicaset-controller"]
    async with controllers(story.world, GarbageCollectorConfig(), ReplicaSetConfig(), names=names):
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(30)
        assert not await story.is_deleted("root")
        story.world.server.store.delete(REPLICA_SETS.gvr, "default", "blocks")
        await story.world.wait(30)
        assert await story.is_deleted("root")


async def test_a_dependent_that_no_longer_blocks_frees_its_owner(story: Story):
    async with story.running():
        root = await story.make("root")
        await story.make("blocks", blocking(root), finalizers=("example.com/wait",))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(30)
        assert not await story.is_deleted("root")
        await story.world.patch(CONFIG_MAPS, "blocks", {"metadata": {"ownerReferences": [root]}})
        await story.world.wait(30)
        assert await story.is_deleted("root")


class Skipping(Around):
    """Watches bring nothing from the collector's first patch on while ``skips`` is set, as where a list follows."""

    skips = False

    async def send(self, request: Request) -> Response:
        self.skips = self.skips or request.method == "PATCH"
        return await self._inner.send(request)

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async with self._inner.stream(request) as stream:
            yield Stream(stream.status, stream.headers, self._left(stream.chunks))

    async def _left(self, chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if not self.skips:
                yield chunk


@pytest.mark.parametrize("propagation", ["Foreground", "Orphan"])
async def test_an_object_that_is_deleted_again_and_again_ends(story: Story, propagation: str):
    """The version without the collector's finalizer is not seen."""
    transport = Skipping(story.world.server.transport())
    async with story.running(transport):
        await story.make("root", finalizers=("example.com/held",))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation=propagation)
        await story.world.wait(5)
        assert transport.skips
        assert (await story.world.get(CONFIG_MAPS, "root"))["metadata"]["finalizers"] == ["example.com/held"]
        await story.world.delete(CONFIG_MAPS, "root", propagation=propagation)
        transport.skips = False
        await story.world.patch(CONFIG_MAPS, "root", {"metadata": {"labels": {"a": "b"}}})
        await story.world.wait(5)
        assert (await story.world.get(CONFIG_MAPS, "root"))["metadata"]["finalizers"] == ["example.com/held"]


async def test_orphans_are_kept_without_owner_references(story: Story):
    async with story.running():
        root = await story.make("root")
        other = await story.make("other")
        for number in range(5):
            await story.make(f"child{number}", root)
        await story.make("shared", root, other)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Orphan")
        await story.world.wait(30)
        expected = {f"child{number}": [] for number in range(5)}
        assert await story.left() == expected | {"other": [], "shared": ["other"]}


async def test_failed_orphaning_is_retried(story: Story):
    broken = [True]

    def refuses(request: Request) -> bool:
        return broken[0] and request.method == "PATCH" and request.path.endswith("/child1")

    transport = Refusing(story.world.server.transport(), refuses)
    async with story.running(transport):
        root = await story.make("root")
        for number in range(3):
            await story.make(f"child{number}", root)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Orphan")
        await story.world.wait(5)
        assert transport.refused
        assert await story.left() == {"root": [], "child0": [], "child1": ["root"], "child2": []}
        broken[0] = False
        await story.world.wait(60)
        assert await story.left() == {f"child{number}": [] for number in range(3)}


async def test_dependents_with_another_owner_lose_only_the_reference(story: Story):
    async with story.running():
        a, b = await story.make("a"), await story.make("b")
        await story.make("child", a, b)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "a", propagation="Background")
        await story.world.wait(5)
        assert await story.left() == {"b": [], "child": ["b"]}
        await story.world.delete(CONFIG_MAPS, "b", propagation="Background")
        await story.world.wait(5)
        assert await story.left() == {}


async def test_another_object_of_the_same_name_is_not_the_owner(story: Story):
    before = await story.make("root")
    await story.make("child", before)
    await story.world.delete(CONFIG_MAPS, "root")
    after = await story.make("root")
    await story.make("new-child", after)
    async with story.running():
        await story.world.wait(40)
        assert await story.left() == {"root": [], "new-child": ["root"]}


async def test_an_owner_in_another_namespace_does_not_count(story: Story):
    async with story.running():
        await story.world.create(NAMESPACES, {"metadata": {"name": "other"}})
        owner = await story.make("root", namespace="other")
        await story.world.wait(5)
        await story.make("child", owner)
        await story.world.wait(30)
        assert await story.left() == {}
        assert "root" in await story.left(namespace="other")
        place = f"[v1/ConfigMap, namespace: default, name: root, uid: {owner['uid']}]"
        problem = f'ownerRef {place} does not exist in namespace "default"'
        assert await story.world.events("child") == [("OwnerRefInvalidNamespace", problem)]


async def test_a_cluster_scoped_object_with_a_namespaced_owner_is_kept(story: Story):
    async with story.running():
        owner = await story.make("root")
        await story.world.delete(CONFIG_MAPS, "root")
        await story.make("reader", owner, kind=ROLES, body={"rules": []})
        await story.make("child", owner)
        await story.world.wait(60)
        assert not await story.is_deleted("reader", ROLES)
        assert await story.is_deleted("child")


async def test_cluster_scoped_objects_own_each_other(story: Story):
    async with story.running():
        owner = await story.make("owner", kind=ROLES, body={"rules": []})
        await story.make("owned", owner, kind=ROLES, body={"rules": []})
        await story.make("left", owner | {"name": "never", "uid": "u"}, kind=ROLES, body={"rules": []})
        await story.world.wait(10)
        assert not await story.is_deleted("owned", ROLES)
        assert await story.is_deleted("left", ROLES)


async def test_a_cycle_of_objects_that_wait_for_each_other_is_broken(story: Story):
    async with story.running():
        a = await story.make("a")
        b = await story.make("b", blocking(a))
        await story.world.patch(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": [blocking(b)]}})
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "a", propagation="Foreground")
        await story.world.wait(60)
        assert await story.left() == {}


async def test_a_member_of_a_cycle_with_a_new_owner_is_kept(story: Story):
    other = await story.make("other", kind=SECRETS)
    unblocked: list[str] = []

    async def before(request: Request) -> None:
        name = request.path.rpartition("/")[2]
        if request.method == "PATCH" and b'"blockOwnerDeletion":false' in request.body:
            unblocked.append(name)
        elif request.method == "GET" and unblocked == [name]:
            unblocked.append("and owned")
            refs = (await story.world.get(CONFIG_MAPS, name))["metadata"]["ownerReferences"]
            await story.world.patch(CONFIG_MAPS, name, {"metadata": {"ownerReferences": [*refs, other]}})

    async with story.running(Refusing(story.world.server.transport(), lambda request: False, before)):
        a = await story.make("a")
        b = await story.make("b", blocking(a))
        await story.world.patch(CONFIG_MAPS, "a", {"metadata": {"ownerReferences": [blocking(b)]}})
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "a", propagation="Foreground")
        await story.world.wait(60)
        assert unblocked[1:2] == ["and owned"]
        assert (await story.left())[unblocked[0]] == ["other"]


async def test_two_references_to_one_uid_where_one_is_right(story: Story):
    """The right one counts: the object is let go, not deleted."""
    async with story.running():
        root = await story.make("root")
        await story.world.wait(5)
        await story.make("child", root, root | {"name": "misnamed"})
        await story.world.wait(10)
        assert await story.left() == {"root": [], "child": []}


async def test_an_owner_whose_dependents_were_deleted_owns_again(story: Story):
    """Its dependents are deleted, but another finalizer keeps it: it counts as an existing owner."""
    async with story.running():
        other = await story.make("other")
        root = await story.make("root", finalizers=("example.com/wait",))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(5)
        await story.make("late", root, other)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "other", propagation="Background")
        await story.world.wait(5)
        assert await story.left() == {"root": [], "late": ["root"]}


async def test_owners_of_kinds_without_an_informer_are_deleted(story: Story):
    """It is in the graph only as an owner. It is deleted after its owner, and then its dependents."""
    async with story.running(config=GarbageCollectorConfig(ignored_resources=(("", "secrets"),))):
        root = await story.make("root")
        middle = await story.make("middle", root, kind=SECRETS)
        lonely = await story.make("lonely", kind=SECRETS)
        await story.world.delete(CONFIG_MAPS, "root")
        await story.make("child", middle)
        await story.make("kept", lonely)
        await story.world.wait(60)
        assert await story.left(SECRETS) == {"lonely": []}
        assert await story.left() == {"kept": ["lonely"]}


async def test_custom_resources_own_and_are_owned(story: Story):
    """Their kind is created while the controller runs, and does not support strategic merge patches."""
    async with story.running():
        await story.world.wait(5)
        await serve_widgets(story.world)
        named = {"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"size": 1}}
        root = await story.make("root", kind=WIDGETS, body=named)
        a, b = await story.make("a"), await story.make("b")
        await story.make("shared", a, b, kind=WIDGETS, body=named)
        await story.make("freed", a, kind=WIDGETS, body=named)
        await story.make("child", root)
        await story.world.wait(60)
        await story.world.delete(CONFIG_MAPS, "a", propagation="Orphan")
        await story.world.wait(10)
        assert await story.left(WIDGETS) == {"root": [], "shared": ["b"], "freed": []}
        await story.world.delete(WIDGETS, "root", propagation="Background")
        await story.world.delete(CONFIG_MAPS, "b", propagation="Background")
        await story.world.wait(10)
        assert await story.left(WIDGETS) == {"freed": []}
        assert await story.left() == {}


async def test_an_owner_whose_kind_is_in_lower_case_owns(story: Story):
    async with story.running():
        owner = await story.make("owner")
        await story.make("child", owner | {"kind": "configmap"})
        await story.make("lost", owner | {"kind": "configmap", "uid": "u"})
        await story.make("listed", owner | {"kind": "ConfigMapList"})
        await story.world.wait(60)
        assert await story.left() == {"owner": [], "child": ["owner"], "listed": ["owner"]}
        await story.world.delete(CONFIG_MAPS, "owner")
        await story.world.wait(60)
        assert await story.left() == {"listed": ["owner"]}


async def test_an_absent_owner_is_verified_again(story: Story, monkeypatch):
    """Children that stay name it in two ways; 1,024 denials take eleven days where the pause is not shortened."""
    monkeypatch.setattr(controller, "GUESS_MAXIMUM_S", controller.GUESS_S)
    transport = Noting(story.world.server.transport())
    async with story.running(transport):
        owner = await story.make("owner")
        for name in ("a", "b"):
            await story.make(name, owner | {"name": f"no-{name}", "uid": "u"}, finalizers=("test/held",))
        await story.world.wait(30)
        assert len([path for path in transport.paths("GET") if "/configmaps/no-" in path]) > 1100


async def test_a_reference_to_an_unserved_kind_keeps_the_object(story: Story):
    async with story.running():
        unknown = {"apiVersion": "example.com/v1", "kind": "Nothing", "name": "n", "uid": "u"}
        await story.make("child", unknown)
        await story.world.wait(120)
        assert await story.left() == {"child": ["n"]}


@pytest.mark.parametrize("name", ["a/b", "../secrets/root", ".."])
async def test_an_owner_with_an_invalid_name_keeps_the_object(story: Story, name):
    """It would be the path of another resource: no request is sent, and nothing is deleted."""
    async with story.running():
        root = await story.make("root")
        await story.make("child", root | {"name": name, "uid": "u"})
        await story.world.wait(60)
        assert await story.left() == {"root": [], "child": [name]}


# -- what changes while requests are under way


@pytest.mark.parametrize(
    ("change", "left"),
    [
        pytest.param({"labels": {"a": "b"}}, False, id="a label"),
        pytest.param({"ownerReferences": "other"}, True, id="an owner that lives"),
    ],
)
async def test_an_object_that_changes_before_its_deletion(story: Story, change, left):
    other = await story.make("other")
    if "ownerReferences" in change:
        change["ownerReferences"] = [other]
    changed = partial(story.world.patch, CONFIG_MAPS, "child", {"metadata": change})
    transport = Meanwhile(story.world.server.transport(), "DELETE", "/child", changed)
    async with story.running(transport):
        await story.make("child", await story.make("root"))
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Background")
        await story.world.wait(10)
        assert transport.happened
        assert await story.is_deleted("child") is not left


async def test_orphaning_just_before_the_deletion_is_honoured(story: Story):
    """Its finalizer is not in the cache yet: a deletion in the background would take it away."""
    orphaned = partial(story.world.delete, CONFIG_MAPS, "child", propagation="Orphan")
    transport = Meanwhile(story.world.server.transport(), "DELETE", "/child", orphaned)
    async with story.running(transport):
        child = await story.make("child", await story.make("root"))
        await story.make("grandchild", child)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Background")
        await story.world.wait(30)
        assert transport.happened
        assert await story.left() == {"grandchild": []}


class Late(Around):
    """Delays the answers that ``late`` says yes to: the server has read long before."""

    def __init__(self, inner: Transport, clock: Clock, late: Callable[[Request], bool]) -> None:
        super().__init__(inner)
        self._clock = clock
        self._late = late

    async def send(self, request: Request) -> Response:
        response = await self._inner.send(request)
        if self._late(request):
            await self._clock.sleep(20)
        return response


async def test_a_lookup_before_the_deletion_of_an_owner_is_not_shared_with_later_ones(story: Story, monkeypatch):
    """More owners go at once than are remembered, so that the dependents have to ask."""
    monkeypatch.setattr(controller, "Recent", lambda: Recent(0))
    asked: list[str] = []

    def late(request: Request) -> bool:
        if request.method == "GET" and request.path.endswith("/configmaps/root"):
            asked.append(request.path)
            return len(asked) == 1
        return False

    transport = Late(story.world.server.transport(), story.world.clock, late)
    async with story.running(transport):
        root, other = await story.make("root"), await story.make("other")
        await story.make("first", root, other)
        for number in range(5):
            await story.make(f"child{number}", root)
        await story.world.wait(5)
        asked.clear()
        await story.world.delete(CONFIG_MAPS, "other", propagation="Background")
        await story.world.wait(5)
        assert len(asked) == 1
        await story.world.delete(CONFIG_MAPS, "root", propagation="Background")
        await story.world.wait(60)
        assert await story.left() == {}


async def test_an_owner_observed_while_it_is_looked_up_at_other_coordinates(story: Story):
    """A child in the wrong namespace causes a lookup there; meanwhile the owner is observed, and is kept."""
    await story.world.create(NAMESPACES, {"metadata": {"name": "aaa"}})
    owner = await story.make("root")
    await story.make("wrong", owner, kind=SECRETS, namespace="aaa")
    await story.make("right", owner, kind=SECRETS)
    held = [True]

    def refuses(request: Request) -> bool:
        return held[0] and request.path == "/api/v1/configmaps"

    async def before(request: Request) -> None:
        if request.path == "/api/v1/namespaces/aaa/configmaps/root" and held[0]:
            held[0] = False
            await story.world.wait(60)

    transport = Refusing(story.world.server.transport(), refuses, before)
    async with story.running(transport):
        await story.world.wait(300)
        assert not held[0]
        assert "wrong" not in await story.left(SECRETS, "aaa")
        assert await story.left(SECRETS) == {"right": ["root"]}


# -- discovery


def edited(request: Request, response: Response, change: Callable[[dict[str, Any]], None]) -> Response:
    if request.path not in ("/api", "/apis"):
        return response
    doc = json.loads(response.body)
    change(doc)
    return Response(response.status, response.headers, json.dumps(doc).encode())


def nothing_is_served(doc: dict[str, Any]) -> None:
    doc["items"] = []


def apps_are_stale(doc: dict[str, Any]) -> None:
    for group in doc["items"]:
        if group["metadata"].get("name") == "apps":
            group["versions"] = [{"version": version["version"], "freshness": "Stale"} for version in group["versions"]]


@pytest.mark.parametrize("change", [nothing_is_served, apps_are_stale])
async def test_kinds_missing_from_discovery_for_a_while_keep_their_informers(story: Story, change):
    wrong: list[int] = []

    def edit(request: Request, response: Response) -> Response:
        if wrong and request.path in ("/api", "/apis"):
            wrong[0] += 1
            return edited(request, response, change)
        return response

    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    async with story.running(Rewriting(story.world.server.transport(), edit)):
        root = await story.make("root", kind=REPLICA_SETS, body={"spec": spec})
        await story.make("child", root)
        await story.world.wait(5)
        wrong.append(0)
        await story.world.wait(65)
        assert wrong[0] >= 4
        await story.world.delete(REPLICA_SETS, "root", propagation="Background")
        await story.world.wait(40)
        wrong.clear()
        await story.world.wait(1000)
        assert await story.left() == {}


def the_core_is_stale(doc: dict[str, Any]) -> None:
    for group in doc["items"]:
        if not group["metadata"].get("name"):
            group["versions"] = [{"version": "v1", "freshness": "Stale"}]


@pytest.mark.parametrize("propagation", ["Background", "Orphan"])
async def test_what_had_no_kind_is_collected_when_discovery_lists_it_again(story: Story, propagation: str):
    """Its monitor has stayed, so that nothing changes but what can be mapped. The backoff is minutes by then."""
    stale = [False]

    def edit(request: Request, response: Response) -> Response:
        return edited(request, response, the_core_is_stale) if stale[0] else response

    async with story.running(Rewriting(story.world.server.transport(), edit)):
        await story.make("child", await story.make("root"))
        await story.world.wait(5)
        stale[0] = True
        await story.world.wait(35)
        await story.world.delete(CONFIG_MAPS, "root", propagation=propagation)
        await story.world.wait(200)
        before = await story.left()
        assert before["child"] == ["root"]
        stale[0] = False
        await story.world.wait(35)
        after = await story.left()
        assert after == ({"child": []} if propagation == "Orphan" else {})


async def test_failed_discovery_is_counted_and_retried(story: Story):
    broken = [True]
    transport = Refusing(
        story.world.server.transport(), lambda request: broken[0] and request.path in ("/api", "/apis")
    )
    async with story.running(transport):
        await story.make("child", await story.make("root"))
        await story.world.delete(CONFIG_MAPS, "root")
        await story.world.wait(100)
        assert transport.refused
        assert not await story.is_deleted("child")
        broken[0] = False
        await story.world.wait(60)
        assert await story.is_deleted("child")


def of_widgets(kind: str) -> tuple[str, ...]:
    """The running tasks of the informers of custom kinds."""
    names = sorted(task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith(kind))
    return tuple(name for name in names if "example.com" in name)


def widget(plural: str) -> dict[str, Any]:
    """Parameters of ``Story.make`` for a widget."""
    kind = "Widget" if plural == "widgets" else plural.capitalize()
    return {"kind": resource(plural, "example.com"), "body": {"apiVersion": "example.com/v1", "kind": kind}}


async def test_informers_of_removed_kinds_are_stopped(story: Story, caplog):
    watches: list[str] = []

    def note(request: Request) -> bool:
        if "example.com" in request.path and request.path != "/apis/example.com/v1":
            watches.append(request.path)
        return False

    async with story.running(Refusing(story.world.server.transport(), note)):
        await story.world.wait(5)
        for number in range(12):
            await serve_widgets(story.world, plural=f"widgets{number}")
        await story.world.wait(40)
        assert len(of_widgets("informer ")) == 12
        root = await story.make("root")
        for number in range(12):
            await story.make("child", root, **widget(f"widgets{number}"))
        await story.world.wait(5)
        for number in range(12):
            await story.world.delete(CRDS, f"widgets{number}.example.com")
        await story.world.wait(70)
        assert of_widgets("informer ") == ()
        watches.clear()
        caplog.clear()
        await story.world.wait(600)
        assert watches == []
        assert [record for record in caplog.records if "example.com" in str(record.__dict__)] == []
        await serve_widgets(story.world, plural="widgets0")
        await story.world.wait(40)
        await story.make("child", root, **widget("widgets0"))
        await story.world.delete(CONFIG_MAPS, "root")
        await story.world.wait(5)
        assert await story.left(resource("widgets0", "example.com")) == {}


async def test_objects_watched_in_another_version_are_collected(story: Story):
    await serve_widgets(story.world)
    async with story.running():
        root = await story.make("root")
        await story.make("child", root, **widget("widgets"))
        await story.world.wait(40)
        (version,) = (await story.world.get(CRDS, "widgets.example.com"))["spec"]["versions"]
        versions = [version | {"served": False, "storage": False}, version | {"name": "v2"}]
        await story.world.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
        await story.world.wait(70)
        assert of_widgets("informer ") == ("informer example.com/v2/widgets",)
        await story.world.delete(CONFIG_MAPS, "root")
        await story.world.wait(60)
        assert await story.left(resource("widgets", "example.com", "v2")) == {}


async def test_caches_of_two_versions_are_not_compared_before_the_newer_one_has_synced(story: Story, monkeypatch):
    compared, lacking = [], monitors._lacking

    def noted(informer: AnyInformer, other: AnyInformer) -> list[Any]:
        compared.append(str(informer.resource.gvr))
        return lacking(informer, other)

    monkeypatch.setattr(monitors, "_lacking", noted)
    unreadable = [True]
    later = "/apis/example.com/v2/widgets"
    transport = Refusing(story.world.server.transport(), lambda sent: unreadable[0] and sent.path == later)
    await serve_widgets(story.world)
    async with story.running(transport):
        await story.make("first", **widget("widgets"))
        await story.world.wait(40)
        (version,) = (await story.world.get(CRDS, "widgets.example.com"))["spec"]["versions"]
        versions = [version | {"served": False, "storage": False}, version | {"name": "v2"}]
        await story.world.patch(CRDS, "widgets.example.com", {"spec": {"versions": versions}})
        await story.world.wait(100)
        assert of_widgets("informer ") == ("informer example.com/v1/widgets", "informer example.com/v2/widgets")
        assert compared == []
        unreadable[0] = False
        await story.world.wait(120)
        assert of_widgets("informer ") == ("informer example.com/v2/widgets",)
        assert len(compared) == 1


async def test_an_owner_that_the_cache_of_another_version_lacks_owns(story: Story):
    """The other version's watch is slow. The former version's shows owners that are newer."""
    transport = Held(story.world.server.transport(), story.world.clock, "/apis/example.com/v2/widgets")
    await serve_widgets(story.world)
    async with story.running(transport):
        await story.make("first", **widget("widgets"))
        await story.world.wait(40)
        (version,) = (await story.world.get(CRDS, "widgets.example.com"))["spec"]["versions"]
        await story.world.patch(
            CRDS, "widgets.example.com", {"spec": {"versions": [version, version | {"name": "v2", "storage": False}]}}
        )
        both = ("informer example.com/v1/widgets", "informer example.com/v2/widgets")
        while of_widgets("informer ") != both:
            await story.world.wait(1)
        await story.world.wait(1)
        transport.hold()
        await story.make("child", await story.make("owner", **widget("widgets")))
        await story.world.wait(60)
        assert await story.left() == {"child": ["owner"]}
        assert of_widgets("informer ") == both
        transport.release()
        await story.world.wait(60)
        assert of_widgets("informer ") == both[1:]
        await story.world.delete(WIDGETS, "owner")
        await story.world.wait(5)
        assert await story.left() == {}


@pytest.mark.parametrize("seed", range(3))
async def test_lost_requests_and_answers_delete_no_owned_object(story: Story, seed):
    faulty = Faulty(story.world.server.transport(), random.Random(seed), 0.4)
    async with story.running(faulty):
        kept, root = await story.make("kept"), await story.make("root")
        for number in range(4):
            await story.make(f"child{number}", blocking(root))
            await story.make(f"shared{number}", root, kept)
        await story.world.wait(5)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(600)
        assert faulty.faults
        assert await story.left() == {"kept": []} | {f"shared{number}": ["kept"] for number in range(4)}


# -- a property

forests = st.lists(st.lists(st.integers(0, 7), max_size=2, unique=True), min_size=3, max_size=8)


@settings(max_examples=8)
@given(forests, st.sets(st.integers(0, 7), min_size=1), st.sampled_from(["Background", "Foreground"]))
async def test_only_objects_with_a_kept_owner_are_kept(certificates: Certificates, forest, deleted, propagation):
    """Each object is owned by some earlier ones; after any deletions objects without owners are deleted."""
    async with running_world(certificates, alone=True) as world, (story := Story(world)).running():
        made: list[dict[str, Any]] = []
        stays: list[bool] = []
        for number, owners in enumerate(forest):
            chosen = sorted({owner % number for owner in owners}) if number else []
            made.append(await story.make(f"o{number}", *(blocking(made[owner]) for owner in chosen)))
            owned = not chosen or any(stays[owner] for owner in chosen)
            stays.append(owned and number not in deleted)
        await story.world.wait(5)
        for number in sorted(deleted):
            if number < len(made) and not await story.is_deleted(f"o{number}"):
                await story.world.delete(CONFIG_MAPS, f"o{number}", propagation=propagation)
        await story.world.wait(200)
        assert set(await story.left()) == {f"o{number}" for number, here in enumerate(stays) if here}


# -- what the server is asked, and what is counted


def watches(kind: str) -> str:
    return f"/api/v1/{kind}"


@pytest.mark.parametrize(
    ("media_type", "body"),
    [
        pytest.param("text/plain", b"404 page not found\n", id="of a group"),
        pytest.param("application/json", json.dumps(NO_SUCH_KIND).encode(), id="of a kind"),
    ],
)
async def test_a_path_that_is_not_served_says_nothing_about_an_owner(story: Story, media_type, body):
    """As while an aggregated API is registered anew, after a version ceased to be served that discovery still lists, or
    while one of several API servers is older than discovery. The answer names no object."""
    unserved = [True]

    def answer(request: Request) -> Response | None:
        missing = unserved[0] and request.path.endswith("/secrets/root")
        return Response(404, {"content-type": media_type}, body) if missing else None

    transport = Rewriting(story.world.server.transport(), answer=answer)
    async with story.running(transport, GarbageCollectorConfig(ignored_resources=(("", "secrets"),))):
        root = await story.make("root", kind=SECRETS)
        await story.make("child", root)
        await story.make("lost", {**root, "name": "none", "uid": "u"})
        await story.world.wait(60)
        assert await story.left() == {"child": ["root"]}
        unserved[0] = False
        await story.world.delete(SECRETS, "root")
        await story.world.wait(120)
        assert await story.left() == {}


@pytest.mark.parametrize("body", [b"", b"<html>not here</html>", b'{"error": "no such object"}'])
async def test_any_other_404_is_an_absent_owner(story: Story, body):
    """Aggregated servers need not answer with a Status."""

    def answer(request: Request) -> Response | None:
        return Response(404, {}, body) if request.path.endswith("/secrets/none") else None

    transport = Rewriting(story.world.server.transport(), answer=answer)
    async with story.running(transport, GarbageCollectorConfig(ignored_resources=(("", "secrets"),))):
        root = await story.make("root", kind=SECRETS)
        await story.make("lost", {**root, "name": "none", "uid": "u"})
        await story.world.wait(60)
        assert await story.left() == {}


async def test_an_owner_that_only_the_cache_has_does_not_count(story: Story):
    server, world = story.world.server.transport(), story.world
    held = Held(server, world.clock, watches("configmaps"))
    async with story.running(held):
        root = await story.make("root")
        await world.wait(40)
        held.hold()
        await world.delete(CONFIG_MAPS, "root")
        await story.make("child", root, {**root, "name": "ghost", "uid": "no-such-uid"}, kind=SECRETS)
        await world.wait(10)
        assert await story.is_deleted("child", SECRETS)
        held.release()


async def test_a_reference_that_the_cache_no_longer_has_does_not_count(story: Story):
    """The cache still says that ``one`` owns the child: only the references of a live view are dropped."""
    server, world = story.world.server.transport(), story.world
    held = Held(server, world.clock, watches("secrets"))
    async with story.running(held):
        one, other = await story.make("one"), await story.make("other")
        await story.make("child", one, other, kind=SECRETS)
        await world.wait(40)
        held.hold()
        await world.patch(SECRETS, "child", {"metadata": {"ownerReferences": [other]}})
        await world.delete(CONFIG_MAPS, "other")
        await world.wait(10)
        assert await story.is_deleted("child", SECRETS)
        held.release()


async def test_a_kind_that_cannot_be_listed_is_counted_and_logged_once(story: Story, caplog):
    metrics = Registry()
    transport = Refusing(story.world.server.transport(), lambda request: request.path == watches("secrets"))
    async with story.running(transport, metrics=metrics):
        await story.world.wait(300)
        assert metric(metrics, "garbagecollector_controller_resources_sync_error_total") == 1
        assert [record.levelname for record in caplog.records if "timed out waiting" in record.message] == ["ERROR"]
        await story.make("child", await story.make("root"))
        await story.world.delete(CONFIG_MAPS, "root")
        await story.world.wait(10)
        assert await story.is_deleted("child")


async def test_discovery_without_a_response_is_counted_each_time(story: Story):
    metrics = Registry()
    transport = Refusing(story.world.server.transport(), lambda request: request.path in ("/api", "/apis"))
    async with story.running(transport, metrics=metrics):
        await story.world.wait(100)
        assert metric(metrics, "garbagecollector_controller_resources_sync_error_total") == 4


async def test_the_work_queues_have_metrics(story: Story):
    metrics = Registry()
    async with story.running(metrics=metrics):
        await story.world.wait(10)
        names = ("graph_changes", "attempt_to_delete", "attempt_to_orphan")
        before = [adds(metrics, f"garbage_collector_{name}") for name in names]
        root = await story.make("root")
        await story.make("child", root)
        await story.world.delete(CONFIG_MAPS, "root", propagation="Orphan")
        await story.world.wait(10)
        after = [adds(metrics, f"garbage_collector_{name}") for name in names]
        assert after[0] >= before[0] + 4
        assert after[2] == before[2] + 1
        await story.world.delete(CONFIG_MAPS, "child", propagation="Foreground")
        await story.world.wait(10)
        assert adds(metrics, "garbage_collector_attempt_to_delete") > before[1]
        assert metric(metrics, "workqueue_depth", name="garbage_collector_graph_changes") == 0


async def test_an_owner_of_a_removed_kind_keeps_the_object_silently(story: Story, caplog):
    async with story.running():
        ref = {"apiVersion": "example.com/v1", "kind": "Gone", "name": "x", "uid": "some-uid"}
        await story.make("child", ref)
        await story.world.wait(300)
        assert not await story.is_deleted("child")
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


WIDGET = {"apiVersion": "example.com/v1", "kind": "Widget"}


@pytest.mark.parametrize("deletion", ["after the next list", "before the kind is watched"])
async def test_dependents_of_a_new_kind_are_collected_within_two_seconds(story: Story, deletion):
    async with story.running():
        await story.world.wait(7)
        await serve_widgets(story.world, wait_s=0.2)
        await story.make("child", await story.make("owner", kind=WIDGETS, body=WIDGET))
        if deletion == "after the next list":
            await story.world.wait(2)
        await story.world.delete(WIDGETS, "owner")
        await story.world.wait(2)
        assert await story.is_deleted("child")


async def test_definitions_that_are_created_together_cause_one_discovery(story: Story):
    transport = Noting(story.world.server.transport())
    async with story.running(transport):
        await story.world.wait(7)
        before = transport.paths("GET").count("/apis")
        for number in range(20):
            await serve_widgets(story.world, plural=f"things{number}", wait_s=0.01)
        await story.world.wait(20)
        assert transport.paths("GET").count("/apis") - before == 1


async def test_a_definition_that_is_never_served_costs_few_discoveries(story: Story):
    transport = Noting(story.world.server.transport())
    async with story.running(transport):
        await serve_widgets(story.world)
        await story.world.wait(35)
        before = transport.paths("GET").count("/apis")
        await serve_widgets(story.world, plural="gadgets", kind="Widget")
        await story.world.wait(295)
        assert transport.paths("GET").count("/apis") - before <= 5 + 10


async def test_owners_of_an_unserved_kind_cost_no_discovery_until_it_is_served(story: Story):
    transport = Noting(story.world.server.transport())
    async with story.running(transport):
        await story.world.wait(20)
        for number in range(50):
            ref = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "x", "uid": f"uid{number}"}
            await story.make(f"child{number}", ref)
        before = transport.paths("GET").count("/apis")
        await story.world.wait(180)
        assert transport.paths("GET").count("/apis") - before <= 12
        assert len(await story.left()) == 50
        await serve_widgets(story.world, wait_s=2)
        assert await story.left() == {}


async def test_a_kind_that_cannot_be_listed_keeps_no_new_kind_from_being_watched(story: Story):
    broken = Refusing(story.world.server.transport(), lambda request: request.path.endswith("/gadgets"))
    async with story.running(broken):
        await story.world.wait(5)
        await serve_widgets(story.world, plural="gadgets")
        await serve_widgets(story.world, wait_s=0.2)
        await story.make("child", await story.make("owner", kind=WIDGETS, body=WIDGET))
        await story.world.delete(WIDGETS, "owner")
        await story.world.wait(2)
        assert await story.is_deleted("child")


async def test_owners_of_a_kind_that_cannot_be_listed_are_read_once(story: Story):
    """And again when they may be gone."""
    asked: list[str] = []

    async def before(request: Request) -> None:
        if request.method == "GET" and "/widgets/" in request.path:
            asked.append(request.path.rpartition("/")[2])

    unlisted = Refusing(story.world.server.transport(), lambda request: request.path.endswith("/widgets"), before)
    async with story.running(unlisted):
        await story.world.wait(5)
        await serve_widgets(story.world)
        for name in ("kept", "deleted"):
            await story.make(f"child-of-{name}", await story.make(name, kind=WIDGETS, body=WIDGET))
        await story.world.wait(6)
        assert sorted(asked) == ["deleted", "kept"]
        await story.world.delete(WIDGETS, "deleted")
        await story.world.wait(60)
        assert await story.left() == {"child-of-kept": ["kept"]}
        assert len(asked) <= 5


async def test_lookups_of_one_owner_are_shared(story: Story):
    """And never with more requests than upstream, which gets each dependent and its owners."""
    transport = Noting(story.world.server.transport())
    async with story.running(transport):
        root = await story.make("root")
        for number in range(60):
            await story.make(f"child{number}", blocking(root))
        await story.world.wait(10)
        transport.sent.clear()
        await story.world.delete(CONFIG_MAPS, "root", propagation="Foreground")
        await story.world.wait(60)
        assert await story.left() == {}
        of_objects = [one for one in transport.sent if "/configmaps/" in one.path]
        asked = [f"{one.method} {one.path.rpartition('/')[2].rstrip('0123456789')}" for one in of_objects]
        assert asked.count("DELETE child") == 60
        assert asked.count("GET child") == 0
        assert asked.count("GET root") <= 61


@pytest.mark.parametrize(("owners", "dependents"), [(SECRETS, CONFIG_MAPS), (CONFIG_MAPS, SECRETS)])
async def test_an_owner_that_is_listed_after_many_dependents(story: Story, monkeypatch, owners, dependents):
    """One kind is listed before the other. One of the dependents names its owner wrongly."""
    monkeypatch.setattr(controller, "QUEUED_AT_ONCE", 2)
    root = await story.make("root", kind=owners)
    for number in range(5):
        await story.make(f"child-{number}", root, kind=dependents)
    await story.make("astray", root | {"name": "other"}, kind=dependents)
    async with story.running():
        await story.world.wait(5)
        assert await story.left(dependents) == {f"child-{number}": ["root"] for number in range(5)}
        await story.world.delete(owners, "root")
        await story.world.wait(5)
        assert await story.left(dependents) == {}


async def test_many_dependents_of_an_owner_that_was_deleted_before(story: Story, monkeypatch):
    """One of them names the owner wrongly."""
    monkeypatch.setattr(controller, "QUEUED_AT_ONCE", 2)
    root = await story.make("root", kind=SECRETS)
    for number in range(7):
        await story.make(f"child-{number}", root)
    await story.make("astray", root | {"name": "other"})
    await story.world.delete(SECRETS, "root")
    async with story.running():
        await story.world.wait(5)
        assert await story.left() == {}
