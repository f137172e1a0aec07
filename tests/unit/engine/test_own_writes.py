"""Records of a controller's own writes, waiting of keys for caches, and requeues."""

import asyncio
import random
from collections.abc import Awaitable
from typing import Any

import pytest

from kcm_cli.api.apps import STATEFUL_SETS
from kcm_cli.api.core import PODS
from kcm_cli.api.resource import Undecodable
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.engine.door import Door
from kcm_cli.engine.own_writes import CREATE, DELETE, TIMEOUT_S, UPDATE, OwnWrites, count_unseen
from kcm_cli.engine.worker import Worker
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import ObjectMeta
from kcm_cli.rest.errors import ApiError, Forbidden, NotFound
from kcm_cli.rest.transport import ConnectionLost, Request, Response, TimedOut, TransportError, Unreachable, Unreadable
from kcm_cli.runtime.informer import AnyInformer, Informer
from kcm_cli.runtime.workqueue import WorkQueue
from tests.kit.controlling import metric
from tests.kit.faults import Answering
from tests.kit.world import EPOCH

KEY = "ns/a"
START = "5"
WRITTEN = 201
Answer = tuple[int, Any] | TransportError


def doc(version: str, name: str = "p", uid: str = "u", **fields: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": uid, "resourceVersion": version, **fields}}


def refusal(status: int, reason: str) -> Answer:
    return status, {"kind": "Status", "reason": reason, "code": status, "message": "no"}


def listed(*items: dict[str, Any]) -> Answer:
    return 200, {"kind": "PodList", "metadata": {"resourceVersion": "99"}, "items": list(items)}


class Server(Answering):
    """Gives these answers in order, and keeps the requests."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.requests: list[Request] = []

    async def send(self, request: Request) -> Response:
        self.requests.append(request)
        answer = self._answers.pop(0)
        await asyncio.sleep(0)
        if isinstance(answer, TransportError):
            raise answer
        return Response(answer[0], {}, codec.encode(answer[1]))


class World:
    """One key, its memory, and caches of pods and StatefulSets at version START, on virtual time."""

    def __init__(self, *answers: Answer, **options: Any) -> None:
        self.server, self.clock, self.metrics = Server(*answers), LoopClock(EPOCH), Registry()
        client = self.server.client(self.clock)
        self.door = Door(client, "c")
        self.pods: AnyInformer = Informer(PODS, client, self.clock, random.Random(1))
        self.sets: AnyInformer = Informer(STATEFUL_SETS, client, self.clock, random.Random(1))
        for informer in (self.pods, self.sets):
            informer.progress.reached(START)
        self.queue = WorkQueue("q", self.clock)
        self.own = OwnWrites(
            self.door, self.clock, (self.pods, self.sets), given_up=count_unseen(self.metrics, "c"), **options
        )

    async def act(self, work: Awaitable[Any], key: str = KEY) -> None:
        """A write on behalf of a key; it may fail."""
        with self.own.acting_for(key):
            try:
                await work
            except (ApiError, TransportError):
                pass

    async def create(self, body: dict[str, Any] | bytes | None = None, key: str = KEY) -> None:
        await self.act(self.door.create(PODS, "ns", {"metadata": {"name": "p"}} if body is None else body), key)

    async def shown(self, key: str = KEY) -> bool:
        return await self.own.shown(key, self.queue)

    def show(
        self, version: str, name: str = "p", uid: str = "u", informer: AnyInformer | None = None, **meta: Any
    ) -> None:
        """An event: the cache has this object, and has come to its version."""
        informer = informer or self.pods
        informer._put(informer.resource.view(metadata=ObjectMeta(name, "ns", uid, version, **meta)))
        informer.progress.reached(version)

    def queued(self) -> bool:
        return len(self.queue) > 0


async def test_a_key_without_writes_does_not_wait():
    world = World()
    assert await world.shown()


async def test_a_key_waits_until_the_cache_has_its_write_and_is_queued_then():
    world = World((WRITTEN, doc("7")))
    await world.create()
    world.show("9", "s", informer=world.sets)
    world.show("6", "other", "v")
    assert not await world.shown()
    assert not world.queued()
    world.show("7")
    assert world.queued()
    assert await world.shown()
    assert not len(world.own)


@pytest.mark.parametrize("version", ["7", "8"], ids=["exactly", "a bookmark, a list, another object's event"])
async def test_the_resource_version_of_the_cache_counts(version):
    world = World((WRITTEN, doc("7")))
    await world.create()
    assert not await world.shown()
    world.pods.progress.reached(version)
    assert await world.shown()


async def test_a_write_cached_before_its_response_is_not_recorded():
    world = World((WRITTEN, doc("7")))
    world.show("7")
    await world.create()
    assert not len(world.own)


async def test_the_newest_write_of_each_kind_counts():
    world = World((200, doc("7")), (200, doc("9")), (200, doc("8")))
    for _ in range(2):
        await world.act(world.door.patch(PODS, "ns", "p", {}))
    await world.act(world.door.update(STATEFUL_SETS, "ns", "p", doc("8"), subresource="status"))
    for name, version, informer in (("p", "7", world.pods), ("p", "8", world.sets)):
        world.show(version, name, informer=informer)
        assert not await world.shown()
    world.show("9")
    assert await world.shown()


async def test_keys_do_not_wait_for_each_other():
    world = World((WRITTEN, doc("7")))
    await world.create()
    assert await world.shown("ns/b")


@pytest.mark.parametrize("version", ["", "abc", "0x7"], ids=["none", "opaque", "not quite a number"])
async def test_non_numeric_versions_are_not_waited_for(version):
    written = World((WRITTEN, doc(version)))
    await written.create()
    assert await written.shown()

    cached = World((WRITTEN, doc("7")))
    cached.pods.progress.reached(version)
    await cached.create()
    assert await cached.shown()

    becomes = World((WRITTEN, doc("7")))
    await becomes.create()
    assert not await becomes.shown()
    becomes.pods.progress.reached(version)
    assert becomes.queued() and await becomes.shown()


async def test_a_relist_counts_with_its_version_also_if_it_is_older():
    world = World((WRITTEN, doc("7")), (WRITTEN, doc("7")))
    await world.create()
    assert not await world.shown()
    await world.pods._replace({}, "6")
    assert not await world.shown()
    await world.pods._replace({}, "7")
    assert await world.shown()
    await world.pods._replace({}, "6")
    await world.create()
    assert not await world.shown()


async def test_a_partly_processed_list_does_not_count():
    world = World((WRITTEN, doc("7")))
    await world.create()
    pod = PODS.view
    found: dict[str, Any] = {f"ns/{n}": pod(metadata=ObjectMeta(str(n), "ns", f"u{n}", "8")) for n in range(250)}
    taking = asyncio.create_task(world.pods._replace(found, "9"))
    await asyncio.sleep(0)
    assert 0 < len(world.pods.store) < 250
    assert not await world.shown()
    await taking
    assert await world.shown()


# -- deletions

DELETED: Answer = (200, {"kind": "Status", "status": "Success"})


@pytest.mark.parametrize(
    "news",
    [
        pytest.param(lambda world: world.show("6", deletion_timestamp="2026-01-01T00:00:00Z"), id="is being deleted"),
        pytest.param(lambda world: world.pods._remove("ns/p"), id="deleted"),
        pytest.param(lambda world: world.show("9", uid="another"), id="another of its name"),
        pytest.param(
            lambda world: world.pods._mark_unknown(
                Undecodable(ObjectMeta("p", "ns", "u", "6", deletion_timestamp="2026-01-01T00:00:00Z"), "odd")
            ),
            id="cannot be decoded, and is being deleted",
        ),
    ],
)
@pytest.mark.parametrize("uid", ["u", ""])
async def test_a_key_waits_until_the_cache_has_its_deletion(news, uid):
    world = World(DELETED)
    world.show(START)
    await world.act(world.door.delete(PODS, "ns", "p", uid=uid))
    assert not await world.shown()
    world.show("6", "other", "v")
    assert not world.queued()
    news(world)
    assert world.queued()
    assert await world.shown()


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(lambda world: None, id="the cache does not have it"),
        pytest.param(lambda world: world.show(START, uid="another"), id="the cache has another of its name"),
        pytest.param(
            lambda world: world.show(START, deletion_timestamp="2026-01-01T00:00:00Z"), id="it was being deleted"
        ),
    ],
)
async def test_a_deletion_cached_already_is_not_recorded(before):
    world = World(DELETED)
    before(world)
    await world.act(world.door.delete(PODS, "ns", "p", uid="u"))
    assert await world.shown()


DYING = {"deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0}


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        pytest.param({}, False, id="no finalizers"),
        pytest.param({"finalizers": ["a/b"]}, True, id="a finalizer is left"),
        pytest.param({"deletionGracePeriodSeconds": 30}, True, id="a kubelet ends it"),
    ],
)
async def test_an_update_that_deletes_an_object_waits_until_the_cache_drops_it(fields, shown):
    world = World((200, doc(START, **DYING | fields)))
    world.show(START, deletion_timestamp="2026-01-01T00:00:00Z", finalizers=("x/y", "a/b"))
    await world.act(world.door.patch(PODS, "ns", "p", {}))
    assert await world.shown() is shown
    world.show("6", "other", "v")
    assert await world.shown() is shown
    world.pods._remove("ns/p")
    assert await world.shown()
    assert world.queued() is not shown
    assert not world.pods.progress._removals


@pytest.mark.parametrize(
    "write", [lambda door: door.patch(PODS, "ns", "p", {}), lambda door: door.delete(PODS, "ns", "p")]
)
async def test_a_write_to_a_deleted_object_waits_until_the_cache_drops_it(write):
    world = World(
        (404, {"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": "p", "kind": "pods"}})
    )
    world.show(START)
    await world.act(write(world.door))
    assert not await world.shown()
    world.show("6", deletion_timestamp="2026-01-01T00:00:00Z")
    assert not await world.shown()
    world.pods._remove("ns/p")
    assert await world.shown()


async def test_an_object_recreated_before_the_response_is_not_waited_for():
    world = World(
        (404, {"kind": "Status", "reason": "NotFound", "code": 404, "details": {"name": "p", "kind": "pods"}})
    )
    world.show(START)
    gone = asyncio.create_task(world.act(world.door.delete(PODS, "ns", "p")))
    await asyncio.sleep(0)
    world.show("9", uid="another")
    await gone
    assert await world.shown()


# -- writes that failed

LOST = [ConnectionLost("broken"), TimedOut("late"), Unreadable("spoilt"), TransportError("?")]


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Unreachable("refused"), id="never sent"),
        pytest.param(refusal(403, "Forbidden"), id="refused"),
        pytest.param(refusal(409, "Conflict"), id="conflict"),
        pytest.param(refusal(404, "NotFound"), id="deleted"),
        pytest.param(refusal(422, "Invalid"), id="invalid"),
        pytest.param(refusal(500, "InternalError"), id="an admission webhook failed"),
        pytest.param(refusal(503, "ServiceUnavailable"), id="not served at the moment"),
    ],
)
@pytest.mark.parametrize(
    "write",
    [
        lambda door: door.create(PODS, "ns", {"metadata": {"generateName": "p-"}}),
        lambda door: door.update(PODS, "ns", "p", doc("5")),
        lambda door: door.patch(PODS, "ns", "p", {}),
        lambda door: door.delete(PODS, "ns", "p"),
    ],
    ids=["create", "update", "patch", "delete"],
)
async def test_writes_without_effect_are_not_recorded(answer, write):
    world = World(answer)
    world.show(START)
    await world.act(write(world.door))
    assert not len(world.own)


ETCD, PROXY = refusal(500, ""), (502, {"kind": "Bad gateway"})


@pytest.mark.parametrize(
    "error", [*LOST, refusal(504, "Timeout"), refusal(500, "ServerTimeout"), ETCD, PROXY], ids=repr
)
@pytest.mark.parametrize(
    ("made", "waits"),
    [
        pytest.param([], False, id="not created"),
        pytest.param([doc("5", "p-1")], False, id="created and cached"),
        pytest.param([doc("5", "p-1"), doc("7", "p-2", labels={"app": "a"})], True, id="created and not cached"),
    ],
)
async def test_a_creation_whose_answer_was_lost_is_looked_up_before_the_next_plan(error, made, waits):
    owner = {"apiVersion": "v1", "kind": "X", "name": "a", "uid": "o", "controller": True}
    for each in made:
        each["metadata"]["ownerReferences"] = [owner]
    others = doc("8", "q-1", "w", ownerReferences=[{**owner, "uid": "other"}])
    world = World(error, listed(*made, others))
    body = {"metadata": {"generateName": "p-", "labels": {"app": "a", "b": ""}, "ownerReferences": [owner]}}
    await world.create(codec.encode(body))
    assert await world.shown() is not waits
    assert ("labelSelector", "app=a,b=") in world.server.requests[1].query
    assert await world.shown() is not waits
    assert len(world.server.requests) == 2
    world.pods.progress.reached("7")
    assert await world.shown()


@pytest.mark.parametrize(
    "write",
    [
        lambda door: door.create(PODS, "ns", {"metadata": {"name": "p"}}),
        lambda door: door.update(PODS, "ns", "p", doc("5")),
        lambda door: door.patch(PODS, "ns", "p", {}),
        lambda door: door.delete(PODS, "ns", "p", uid="u"),
    ],
    ids=["create", "update", "patch", "delete"],
)
@pytest.mark.parametrize(
    ("found", "shows"),
    [
        pytest.param(listed(doc("7")), lambda world: world.show("7"), id="there is a newer version"),
        pytest.param(listed(doc("5")), None, id="nothing has changed"),
        pytest.param(listed(doc("7", uid="w")), lambda world: world.show("7", uid="w"), id="there is another one"),
        pytest.param(listed(), lambda world: world.pods._remove("ns/p"), id="it is deleted"),
    ],
)
async def test_a_write_to_a_name_whose_answer_was_lost_is_looked_up(write, found, shows):
    world = World(ConnectionLost("broken"), found)
    world.show(START)
    await world.act(write(world.door))
    assert await world.shown() is (shows is None)
    asked = world.server.requests[1]  # roles of upstream's controllers let them list pods, but not get one
    assert (asked.method, asked.path) == ("GET", "/api/v1/namespaces/ns/pods")
    assert ("fieldSelector", "metadata.name=p") in asked.query
    if shows is not None:
        shows(world)
        assert await world.shown()


async def test_a_failed_lookup_is_retried():
    world = World(ConnectionLost("broken"), *[ConnectionLost("away")] * 11, listed())
    await world.create()
    with pytest.raises(ConnectionLost):
        await world.shown()
    assert await world.shown()


async def test_an_invalid_list_does_not_mean_that_an_object_is_deleted():
    """Such as an aggregated API's, that a proxy has mixed up: the object would be waited for until it is given up."""
    nothing: Answer = (200, {"kind": "FlunderList", "items": None})
    world = World(ConnectionLost("broken"), nothing, listed(doc("5")))
    world.show(START)
    await world.act(world.door.update(PODS, "ns", "p", doc("5")))
    with pytest.raises(Unreadable, match="without a resourceVersion"):
        await world.shown()
    assert await world.shown()


@pytest.mark.parametrize(
    ("cached", "requests"), [(False, 2), (True, 1)], ids=["the cache does not have it", "the cache has it"]
)
async def test_an_existing_name_that_the_cache_lacks_is_looked_up(cached, requests):
    world = World(refusal(409, "AlreadyExists"), listed(doc("7")))
    if cached:
        world.show(START)
    await world.create()
    assert await world.shown() is cached
    world.show("7")
    assert await world.shown()
    assert len(world.server.requests) == requests


async def test_an_invalid_body_is_looked_up_in_the_whole_namespace():
    world = World(ConnectionLost("broken"), listed())
    await world.create({"metadata": {"labels": 7}})
    assert await world.shown()
    assert not any(name == "labelSelector" for name, _ in world.server.requests[1].query)


# -- what is not noted at all


async def test_writes_to_other_resources_outside_of_a_sync_and_to_subresources_that_are_posted_to():
    world = World(*[(WRITTEN, doc("7"))] * 3)
    own = World()
    await world.door.create(PODS, "ns", {"metadata": {"name": "p"}})
    await world.act(world.door.create(PODS, "ns", {}, name="p", subresource="binding"))
    with own.own.acting_for(KEY):
        pass
    narrow = OwnWrites(world.door, world.clock, (world.sets,))
    with narrow.acting_for(KEY):
        await world.door.create(PODS, "ns", {"metadata": {"name": "p"}})
    assert not len(world.own) and not len(narrow)


@pytest.mark.parametrize("verb", [CREATE, UPDATE, DELETE])
async def test_ignored_verbs_are_not_waited_for_unless_the_answer_was_lost(verb):
    world = World(*[(200, doc("7"))] * 3, ConnectionLost("broken"), listed(doc("8")), unheeded=frozenset((verb,)))
    world.show(START)
    writes = {
        CREATE: lambda: world.door.create(PODS, "ns", {"metadata": {"name": "p"}}),
        UPDATE: lambda: world.door.patch(PODS, "ns", "p", {}),
        DELETE: lambda: world.door.delete(PODS, "ns", "p"),
    }
    await world.act(writes[verb]())
    assert await world.shown()
    for other in writes.keys() - {verb}:
        await world.act(writes[other](), "ns/other")
    assert not await world.shown("ns/other")
    await world.act(writes[verb]())
    assert not await world.shown()


async def test_an_existing_name_is_not_looked_up_if_creations_are_ignored():
    world = World(refusal(409, "AlreadyExists"), unheeded=frozenset((CREATE,)))
    await world.create()
    assert not len(world.own)


async def test_writes_of_tasks_started_by_a_sync_belong_to_its_key():
    world = World((200, doc("7")), (200, doc("8")))

    async def both() -> None:
        await asyncio.gather(*(world.door.patch(PODS, "ns", "p", {}) for _ in range(2)))

    await world.act(both())
    assert not await world.shown()


async def test_writes_of_the_faster_client_are_recorded():
    world = World((200, doc("7")))
    await world.act(world.door.faster(100, 100).patch(PODS, "ns", "p", {}))
    assert not await world.shown()


# -- waiting


async def test_a_deferred_sync_is_reported_with_the_stale_cache():
    skips: list[tuple[str, str]] = []
    world = World((WRITTEN, doc("7")), skipped=lambda *place: skips.append(place))
    assert await world.shown()
    await world.create()
    assert not await world.shown()
    assert not await world.shown()
    assert skips == [("", "pods")] * 2


async def test_a_write_that_is_never_cached_is_dropped_logged_and_counted(caplog):
    world = World((WRITTEN, doc("7")))
    await world.create()
    assert not await world.shown()
    await world.clock.sleep(TIMEOUT_S - 1)
    assert not await world.shown()
    await world.clock.sleep(2)
    assert world.queued() and await world.shown()
    assert metric(world.metrics, "kcm_own_writes_unseen_total", controller="c", resource="pods") == 1
    world.pods.progress.reached("7")  # late, and no longer waited for
    assert not len(world.own)
    assert "Cache does not show own writes" in caplog.text


async def test_each_waiting_queue_gets_the_key():
    world = World((WRITTEN, doc("7")))
    urgent = WorkQueue("urgent", world.clock)
    await world.create()
    assert not await world.own.shown(KEY, urgent)
    assert not await world.shown()
    world.show("7")
    assert len(urgent) == len(world.queue) == 1


async def test_a_key_waits_for_the_newest_of_its_writes():
    world = World((200, doc("7")), (200, doc("8")))
    await world.act(world.door.patch(PODS, "ns", "p", {}))
    await world.act(world.door.patch(PODS, "ns", "p", {}))
    assert not await world.shown()
    world.show("7")
    assert not world.queued()
    world.show("8")
    assert world.queued() and not len(world.own)


async def test_a_worker_syncs_a_key_again_only_when_caches_have_its_writes():
    world = World((WRITTEN, doc("7")))
    synced: list[float] = []

    async def sync(key: str) -> None:
        synced.append(round(world.clock.monotonic()))
        if len(synced) == 1:
            await world.door.create(PODS, "ns", {"metadata": {"name": "p"}})

    worker = Worker(controller="c", queue=world.queue, sync=sync, clock=world.clock, own=world.own)
    task = asyncio.create_task(worker.run())
    world.queue.add(KEY)
    await asyncio.sleep(1)
    world.queue.add(KEY)
    await asyncio.sleep(1)
    assert synced == [0]
    await asyncio.sleep(1)
    world.show("7")
    await asyncio.sleep(1)
    assert synced == [0, 3]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_failed_lookup_requeues_like_an_error():
    world = World(ConnectionLost("broken"), refusal(403, "Forbidden"), listed())
    synced: list[str] = []

    async def sync(key: str) -> None:
        synced.append(key)

    await world.create()
    task = asyncio.create_task(
        Worker(controller="c", queue=world.queue, sync=sync, clock=world.clock, own=world.own).run()
    )
    world.queue.add(KEY)
    await asyncio.sleep(30)
    assert synced == [KEY]
    assert len(world.server.requests) == 3
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_no_writes_are_kept_once_all_are_cached():
    world = World(*((WRITTEN, doc(str(100 + number), f"p{number}")) for number in range(200)))
    for number in range(200):
        await world.create({"metadata": {"name": f"p{number}"}}, key=f"ns/{number % 20}")
    assert len(world.own) == 20
    world.pods.progress.reached("300")
    assert not len(world.own)
    assert not world.pods.progress._versions and not world.pods.progress._ends


async def test_a_refused_lookup_is_an_error_of_the_key():
    world = World(ConnectionLost("broken"), refusal(404, "NotFound"))
    await world.create({"metadata": {"generateName": "p-"}})
    with pytest.raises(NotFound):
        await world.shown()


async def test_an_answer_lost_while_the_key_waits_does_not_block_it():
    world = World((WRITTEN, doc("7")), ConnectionLost("broken"), listed(doc("7")))
    await world.create()
    assert not await world.shown()
    await world.act(world.door.patch(PODS, "ns", "p", {}))
    world.show("7")
    assert world.queued() and await world.shown()


async def test_creations_with_lost_answers_are_looked_up_by_one_list():
    world = World(*[ConnectionLost("broken")] * 100, listed())
    for _ in range(100):
        await world.create({"metadata": {"generateName": "p-", "labels": {"app": "a"}}})
    assert await world.shown()
    assert len(world.server.requests) == 101


async def test_a_permanently_refused_lookup_is_given_up():
    world = World(ConnectionLost("broken"), *[refusal(403, "Forbidden")] * 3)
    await world.create()
    for _ in range(2):
        with pytest.raises(Forbidden):
            await world.shown()
        await world.clock.sleep(TIMEOUT_S / 2)
    await world.clock.sleep(1)
    assert await world.shown()
    assert metric(world.metrics, "kcm_own_writes_unseen_total", controller="c", resource="pods") == 1


async def test_a_lookup_is_not_given_up_while_the_server_is_unavailable():
    away = refusal(503, "ServiceUnavailable")
    world = World(ConnectionLost("broken"), away, away, listed(doc("7")))
    await world.create()
    for _ in range(2):
        with pytest.raises(ApiError):
            await world.shown()
        await world.clock.sleep(TIMEOUT_S + 1)
    assert not await world.shown()
    world.show("7")
    assert await world.shown()


async def test_concurrent_lookups_of_a_key_by_two_queues():
    world = World(ConnectionLost("broken"), listed(), listed())
    urgent = WorkQueue("urgent", world.clock)
    await world.create()
    assert await asyncio.gather(world.shown(), world.own.shown(KEY, urgent)) == [True, True]


async def test_a_lookup_that_ends_late_does_not_forget_newer_writes(monkeypatch: pytest.MonkeyPatch):
    world = World(ConnectionLost("broken"), listed(), listed(), (WRITTEN, doc("7")))
    await world.create()
    send, goes_on = world.server.send, asyncio.Event()

    async def late(request: Request) -> Response:
        monkeypatch.setattr(world.server, "send", send)
        answer = await send(request)
        await goes_on.wait()
        return answer

    monkeypatch.setattr(world.server, "send", late)
    slow = asyncio.create_task(world.shown())
    await asyncio.sleep(0)
    assert await world.own.shown(KEY, WorkQueue("urgent", world.clock))
    await world.create()  # what the faster queue wrote then
    goes_on.set()
    assert not await slow
    world.show("7")
    assert await world.shown()
