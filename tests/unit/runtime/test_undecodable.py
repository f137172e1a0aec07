"""One object that cannot be decoded does not affect the others of its kind: lists, pages, watches, and its end."""

import asyncio
import random
import sys

import pytest

from kcm_cli.api.apps import CONTROLLER_REVISIONS, DEPLOYMENTS
from kcm_cli.api.core import CONFIG_MAPS, NAMESPACES, PODS
from kcm_cli.api.devices import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from kcm_cli.api.resource import GVR, Resource, Undecodable
from kcm_cli.component import virtual
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.machinery import codec
from kcm_cli.machinery.meta import OwnerReference, PartialObject
from kcm_cli.planning.actions import Notice, edited
from kcm_cli.rest.client import Client
from kcm_cli.rest.listing import read_page_in_turns
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.reading import read_object
from kcm_cli.rest.transport import Response, Unreadable
from kcm_cli.runtime.informer import AnyInformer, Informer, Scope
from kcm_cli.runtime.object_errors import ObjectErrors
from tests.unit.api.schemas import resources
from tests.unit.machinery.test_nesting import DEPTHS, TOO_DEEP
from tests.unit.runtime.test_informer import HOLD, JSON, Server, bookmark, status

WIDGETS = Resource(GVR("example.com", "v1", "widgets"), "Widget", PartialObject)
KINDS = {
    "pods": (PODS, False),
    "deployments": (DEPLOYMENTS, False),
    "configmaps": (CONFIG_MAPS.metadata_only, True),
    "resourceclaims": (RESOURCE_CLAIMS, False),
    "resourceclaimtemplates": (RESOURCE_CLAIM_TEMPLATES, False),
    "controllerrevisions": (CONTROLLER_REVISIONS, False),
    "namespaces": (NAMESPACES, False),
    "widgets": (WIDGETS.metadata_only, True),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def nested(depth: int) -> bytes:
    return b'{"f:a":' * depth + b"{}" + b"}" * depth


def managed(fields: bytes) -> bytes:
    return b'"managedFields":[{"manager":"m","operation":"Update","fieldsType":"FieldsV1","fieldsV1":%s}]' % fields


DECLARED = {
    "pods": b'"status":{"conditions":%s}',
    "deployments": b'"spec":{"template":{"metadata":{"managedFields":[{"fieldsV1":%s}]}}}',
    "controllerrevisions": b'"data":%s',
}
"""Where a kind's view has what a user writes."""
ODD: dict[str, bytes] = {
    "a number": b"5",
    "a text": b'"x"',
    "a list": b"[null]",
    "a huge number": b"9" * 5_000,
    "an infinite number": b"1e400",
    "repeated": b'{"a":1,"a":{}}',
    "half a pair": rb'"\ud800"',
    "no UTF-8": b'"\xff"',
    "a control character": b'"\x01"',
    "a word": b"tru",
    "two words": b"{a b}",
}


def obj(kind: str, name: str, version: int, more: bytes = b"", *, meta: bytes = b"") -> bytes:
    resource, partial = KINDS[kind]
    head = b'"kind":"%s","apiVersion":"%s"' % (resource.kind.encode(), resource.api_version.encode())
    if partial:
        head = b'"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"'
    place = b'"namespace":"ns",' if resource.namespaced else b""
    metadata = b'"name":"%s",%s"uid":"uid-%s","resourceVersion":"%d"' % (name.encode(), place, name.encode(), version)
    parts = [head, b'"metadata":{%s}' % b",".join(filter(None, (metadata, meta))), more]
    return b"{%s}" % b",".join(filter(None, parts))


def event(type_: str, data: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), data)


def page(kind: str, version: int, *items: bytes, more: str = "") -> Response:
    resource, partial = KINDS[kind]
    of = "PartialObjectMetadata" if partial else resource.kind
    text = b'{"kind":"%sList","metadata":{"resourceVersion":"%d","continue":"%s"},"items":[%s]}'
    return Response(200, JSON, text % (of.encode(), version, more.encode(), b",".join(items)))


class Seen:
    """What an informer has cached and reported after a time."""

    def __init__(self, kind: str, server: Server, seconds: float = 300) -> None:
        self.said: list[Notice] = []
        registry = Registry()
        resource, partial = KINDS[kind]

        async def main() -> None:
            clock = LoopClock()
            errors = ObjectErrors(registry, self.said.append, clock.monotonic)
            client = Client(server, limiter=Unlimited(), user_agent="test", clock=clock)
            scope = Scope(metadata_only=partial)
            informer: AnyInformer = Informer(resource, client, clock, random.Random(1), scope, errors)
            task = asyncio.create_task(informer.run())
            await asyncio.sleep(seconds)
            assert not task.done()
            task.cancel()
            self.known = {one.name: one.metadata.resource_version for one in informer.store}
            self.objects = list(informer.store)
            self.unknown = sorted(informer.store.unknown())
            self.version = informer.last_version
            self.warnings = errors.warnings()

        virtual.run(main())
        self.metrics = registry.expose().decode()

    def reports(self, kind: str, *keys: str) -> bool:
        """Whether these objects, and no others, are unknown, and are reported in all places."""
        counted = f'kcm_undecodable_objects_total{{resource="{KINDS[kind][0].plural}"}}'
        return (
            self.unknown == sorted(keys)
            and (counted in self.metrics) == bool(keys)
            and len(self.warnings) == bool(keys)
            and sorted({notice.ref.name for notice in self.said}) == sorted(key.rpartition("/")[2] for key in keys)
        )


def key(kind: str, name: str) -> str:
    return f"ns/{name}" if KINDS[kind][0].namespaced else name


@EVERY
@pytest.mark.parametrize("depth", DEPTHS)
def test_fields_that_no_controller_reads_nest_as_deeply_as_they_like(kind: str, depth: int) -> None:
    """As on upstream, which skips them: the object itself is known, and is written back as it was."""
    deep = [obj(kind, "deep", version, meta=managed(nested(depth))) for version in (3, 6, 8)]
    last = bookmark(5, last=True)
    mark = event("BOOKMARK", obj(kind, "", 9, meta=managed(nested(depth))))
    first = [event("ADDED", deep[0]), event("ADDED", obj(kind, "a", 4)), last]
    watched = Server([[*first, event("MODIFIED", deep[1]), event("ADDED", obj(kind, "b", 7)), mark, HOLD]])
    seen = Seen(kind, watched, 100)
    assert (seen.known, seen.version, len(watched.asked)) == ({"deep": "6", "a": "4", "b": "7"}, "9", 1)
    assert seen.reports(kind)
    resource = KINDS[kind][0]
    if resource.keeps_raw:
        one = next(one for one in seen.objects if one.name == "deep")
        doc = edited(one, {("metadata", "finalizers"): ["x"], ("status", "y"): 1})
        assert managed(nested(depth)) in codec.encode(doc)
    gone = Server([[*first, event("DELETED", deep[2]), event("ADDED", obj(kind, "b", 9)), HOLD]])
    assert Seen(kind, gone).known == {"a": "4", "b": "9"}
    pages = [page(kind, 9, obj(kind, "a", 4), more="x"), page(kind, 9, deep[0], obj(kind, "b", 7))]
    assert Seen(kind, Server([status(422, "Invalid"), [HOLD]], pages)).known == {"deep": "3", "a": "4", "b": "7"}


@pytest.mark.parametrize("kind", DECLARED)
@pytest.mark.parametrize("depth", TOO_DEEP)
def test_an_object_that_nests_too_deeply_is_unknown_and_others_are_served(kind: str, depth: int) -> None:
    deep = [obj(kind, "deep", version, DECLARED[kind] % nested(depth)) for version in (3, 6, 8)]
    first = [event("ADDED", deep[0]), event("ADDED", obj(kind, "a", 4)), bookmark(5, last=True)]
    watched = Server([[*first, event("MODIFIED", deep[1]), event("ADDED", obj(kind, "b", 7)), HOLD]])
    seen = Seen(kind, watched, 100)
    assert (seen.known, seen.version, len(watched.asked)) == ({"a": "4", "b": "7"}, "7", 1)
    assert seen.reports(kind, key(kind, "deep"))
    gone = Seen(kind, Server([[*first, event("DELETED", deep[2]), HOLD]]))
    assert (gone.known, gone.unknown, gone.version, gone.warnings) == ({"a": "4"}, [], "8", [])
    pages = [page(kind, 9, obj(kind, "a", 4), more="x"), page(kind, 9, deep[0], obj(kind, "b", 7))]
    listed = Seen(kind, Server([status(422, "Invalid"), [HOLD]], pages))
    assert (listed.known, listed.version) == ({"a": "4", "b": "7"}, "9")
    assert listed.reports(kind, key(kind, "deep"))


@EVERY
@pytest.mark.parametrize("what", ODD)
@pytest.mark.parametrize("field", [b'"metadata":{"labels":%s}', b'"spec":%s', b'"status":{"x":%s}'])
def test_an_odd_object_does_not_affect_the_others(kind: str, what: str, field: bytes) -> None:
    """In a list, whatever is wrong with it; where its text is not JSON, that is requested again before."""
    more = field % ODD[what]
    odd = obj(kind, "odd", 3, more if not more.startswith(b'"metadata"') else b"")
    if more.startswith(b'"metadata"'):
        odd = obj(kind, "odd", 3, meta=b'"labels":%s' % ODD[what])
    items = (obj(kind, "a", 4), odd, obj(kind, "b", 7))
    server = Server([status(422, "Invalid"), *[[HOLD]] * 20], [page(kind, 9, *items) for _ in range(20)])
    seen = Seen(kind, server)
    assert {"a": "4", "b": "7"}.items() <= seen.known.items()
    assert ("odd" in seen.known) != (key(kind, "odd") in seen.unknown)
    assert seen.version == "9"
    assert sum(asked["verb"] == "list" for asked in server.asked) <= 4


@EVERY
@pytest.mark.parametrize("what", ODD)
def test_an_odd_event_does_not_stop_the_watch(kind: str, what: str) -> None:
    odd = event("MODIFIED", obj(kind, "odd", 6, b'"spec":%s' % ODD[what]))
    first = [event("ADDED", obj(kind, "a", 4)), bookmark(5, last=True)]
    after = [event("ADDED", obj(kind, "b", 7)), HOLD]
    items = (obj(kind, "a", 4), obj(kind, "odd", 6, b'"spec":%s' % ODD[what]))
    server = Server([[*first, odd, *after], [odd, *after], [odd, *after], after], [page(kind, 6, *items)])
    seen = Seen(kind, server)
    assert {"a": "4", "b": "7"}.items() <= seen.known.items()
    assert ("odd" in seen.known) != (key(kind, "odd") in seen.unknown)
    assert seen.version == "7"


@EVERY
@pytest.mark.parametrize("text", [rb'{"f:\ud800":{}}', b'{"f:\xff":{}}'])
def test_managed_fields_are_what_their_user_wrote(kind: str, text: bytes) -> None:
    """kube-apiserver stores and returns such bytes."""
    odd = obj(kind, "odd", 3, meta=managed(text))
    seen = Seen(kind, Server([[event("ADDED", odd), event("ADDED", obj(kind, "a", 4)), bookmark(5, last=True), HOLD]]))
    assert seen.known == {"odd": "3", "a": "4"}
    assert seen.reports(kind)
    for one in seen.objects:
        if one.raw is not None and one.name == "odd":
            assert text in codec.encode(edited(one, {("metadata", "finalizers"): []}))


@pytest.mark.parametrize("data", [b'{"a":"\xff"}', rb'{"a":"\ud800"}', b'{"\xff":1}', b'{"a":1,"a":2}'])
def test_revisions_have_what_their_user_wrote(data: bytes) -> None:
    """Any user may create one, of no owner, and kube-apiserver returns its bytes."""
    kind = "controllerrevisions"
    odd = obj(kind, "odd", 3, b'"data":%s' % data)
    listed = Server([status(422, "Invalid"), [HOLD]], [page(kind, 9, odd, obj(kind, "a", 4))])
    for server in (
        listed,
        Server([[event("ADDED", odd), event("ADDED", obj(kind, "a", 4)), bookmark(9, last=True), HOLD]]),
    ):
        seen = Seen(kind, server)
        assert (seen.known, len(server.asked) <= 3) == ({"odd": "3", "a": "4"}, True)
        assert data in codec.encode(edited(next(one for one in seen.objects if one.name == "odd"), {("revision",): 4}))


RAW = {
    "controllerrevisions": b'"data":%s',
    "resourceclaims": b'"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":%s}}]}}',
    "resourceclaimtemplates": b'"spec":{"spec":{"devices":{"config":[{"opaque":{"driver":"d","parameters":%s}}]}}}',
}


def test_all_kinds_that_keep_their_documents_say_where_raw_extensions_are() -> None:
    assert {name for name, resource in resources().items() if resource.raw_fields} == {
        "CONTROLLER_REVISIONS",
        "RESOURCE_CLAIMS",
        "RESOURCE_CLAIM_TEMPLATES",
    }


@pytest.mark.parametrize("kind", RAW)
@pytest.mark.parametrize("data", [b'{"a":"\xff"}', b'{"\xff":[1]}', rb'{"a":"\ud800"}'])
def test_raw_extensions_have_any_text(kind: str, data: bytes) -> None:
    """Any user may store one, and each version of it would be requested again, and then listed."""
    odd = [
        event(type_, obj(kind, "odd", version, RAW[kind] % data)) for type_, version in (("ADDED", 3), ("MODIFIED", 7))
    ]
    server = Server([[odd[0], event("ADDED", obj(kind, "a", 4)), bookmark(5, last=True), odd[1], HOLD]])
    seen = Seen(kind, server)
    assert (seen.known, len(server.asked)) == ({"odd": "7", "a": "4"}, 1)
    one = next(one for one in seen.objects if one.name == "odd")
    assert data in codec.encode(edited(one, {("metadata", "finalizers"): []}))


@pytest.mark.parametrize("item", [b"null", b"{}", b"5", b'{"metadata":null}', b'{"metadata":{"name":5}}', b"[]"])
def test_an_object_without_a_key_does_not_affect_the_others(item: bytes) -> None:
    pages = [page("pods", 9, obj("pods", "a", 4), item, obj("pods", "b", 7))]
    seen = Seen("pods", Server([status(422, "Invalid"), [HOLD]], pages))
    assert (seen.known, seen.version) == ({"a": "4", "b": "7"}, "9")
    first = [event("ADDED", item), event("ADDED", obj("pods", "a", 4)), bookmark(5, last=True)]
    changes = [event("MODIFIED", item), event("ADDED", obj("pods", "b", 7)), HOLD]
    watched = Server([[*first, *changes]])
    seen = Seen("pods", watched)
    assert (seen.known, seen.version, len(watched.asked)) == ({"a": "4", "b": "7"}, "7", 1)


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python goes deeper: such objects are usual")
async def test_a_page_of_deep_objects_yields_to_the_event_loop() -> None:
    body = page("pods", 9, *(obj("pods", f"p{number}", 4, meta=managed(nested(9_000))) for number in range(20))).body
    turns = 0
    reading = asyncio.create_task(read_page_in_turns(body, "Pod"))
    while not reading.done():
        turns += 1
        await asyncio.sleep(0)
    assert len(reading.result().items) == 20
    assert turns > 20


def test_the_owner_of_an_unknown_object_is_known() -> None:
    """So that what it owns is not created again."""
    owners = b'"ownerReferences":[{"uid":5},{"uid":"u","controller":true}],"labels":%s' % nested(20_000)
    found = PODS.decode_or_explain(obj("pods", "odd", 3, meta=owners))
    assert isinstance(found, Undecodable)
    assert (found.key, found.metadata.owner_references) == ("ns/odd", (OwnerReference(uid="u", controller=True),))


@pytest.mark.parametrize("kind", DECLARED)
def test_an_answer_about_an_undecodable_object_is_unreadable(kind: str) -> None:
    """Like a lost answer: the write may have taken effect."""
    with pytest.raises(Unreadable):
        read_object(KINDS[kind][0], obj(kind, "a", 3, DECLARED[kind] % nested(max(TOO_DEEP))), "a")
    assert read_object(KINDS[kind][0], obj(kind, "a", 3, meta=managed(nested(2_000))), "a").name == "a"
