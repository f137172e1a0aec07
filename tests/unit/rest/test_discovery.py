"""What a server serves, in both forms of discovery."""

import asyncio
from contextlib import suppress

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.discovery import discover, resources_of
from kcm_cli.rest.errors import ApiError, ServiceUnavailable
from kcm_cli.rest.mapper import REFRESH_S, Mapper, NoMatch, never
from kcm_cli.rest.served_resources import Subresource
from kcm_cli.rest.transport import Response, Unreadable

SCALE = {"subresource": "scale", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"}}
AGGREGATED = {
    "/api": [("", [("v1", [("pods", "Pod", [{"subresource": "status", "responseKind": {"kind": "Pod"}}])])])],
    "/apis": [
        ("apps", [("v1", [("deployments", "Deployment", [SCALE])])]),
        ("batch", [("v1", [("jobs", "Job", [])]), ("v1beta1", [("jobs", "Job", []), ("cronjobs", "CronJob", [])])]),
    ],
}
PLAIN = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {
        "kind": "APIGroupList",
        "groups": [
            {"name": "apps", "versions": [{"version": "v1"}], "preferredVersion": {"version": "v1"}},
            {
                "name": "batch",
                "versions": [{"version": "v1"}, {"version": "v1beta1"}],
                "preferredVersion": {"version": "v1"},
            },
        ],
    },
    "/api/v1": [("pods", "Pod", "", ""), ("pods/status", "Pod", "", "")],
    "/apis/apps/v1": [
        ("deployments/scale", "Scale", "autoscaling", "v1"),
        ("deployments", "Deployment", "", ""),
    ],
    "/apis/batch/v1": [("jobs", "Job", "", "")],
    "/apis/batch/v1beta1": [("jobs", "Job", "", ""), ("cronjobs", "CronJob", "", "")],
}
TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def aggregated_doc(groups, stale=()):
    items = []
    for name, versions in groups:
        shown = []
        for version, resources in versions:
            freshness = "Stale" if (name, version) in stale else "Current"
            shown.append({"version": version, "freshness": freshness, "resources": [one(*r) for r in resources]})
        items.append({"metadata": {"name": name}, "versions": shown})
    return {"kind": "APIGroupDiscoveryList", "items": items}


def one(plural, kind, subresources):
    return {
        "resource": plural,
        "responseKind": {"kind": kind},
        "scope": "Namespaced",
        "singularResource": kind.lower(),
        "verbs": ["get", "list"],
        "subresources": subresources,
    }


@pytest.fixture
def aggregated(script, answer):
    def make(stale=()):
        def serve(request):
            assert TYPE in request.headers["accept"]
            return answer(200, aggregated_doc(AGGREGATED[request.path], stale), content_type=TYPE)

        return script(serve)

    return make


@pytest.fixture
def plain(script, answer, failure):
    def make(broken=(), missing=()):
        def serve(request):
            if request.path in broken:
                return failure(503, "ServiceUnavailable")
            if request.path in missing:
                return failure(404, "NotFound")
            found = PLAIN[request.path]
            if isinstance(found, dict):
                return answer(200, found)
            resources = [
                {"name": n, "kind": k, "group": g, "version": v, "namespaced": True, "verbs": ["get", "list"]}
                for n, k, g, v in found
            ]
            return answer(200, {"kind": "APIResourceList", "resources": resources})

        return script(serve)

    return make


def shape(discovery):
    return {(str(r.gvr), r.kind, r.namespaced, tuple(sorted(r.verbs)), tuple(r.subresources)) for r in discovery.all()}


async def test_aggregated_discovery_takes_two_requests(aggregated):
    transport = aggregated()
    found = await discover(transport.client())
    assert len(transport.asked) == 2
    assert [group.name for group in found.groups] == ["", "apps", "batch"]
    assert ("apps/v1/deployments", "Deployment", True, ("get", "list"), ("scale",)) in shape(found)


async def test_both_formats_have_the_same_result(aggregated, plain):
    new, old = await discover(aggregated().client()), await discover(plain().client())
    assert shape(new) == shape(old)
    assert new.groups == old.groups


async def test_what_a_server_serves_may_change_and_change_back(script, answer):
    served = dict(AGGREGATED)
    transport = script(lambda request: answer(200, aggregated_doc(served[request.path]), content_type=TYPE))
    first = await discover(transport.client())
    served["/apis"] = [("apps", [("v1", [("statefulsets", "StatefulSet", [])])])]
    changed = await discover(transport.client())
    assert {one.gvr.plural for one in changed.all()} == {"pods", "statefulsets"}
    served["/apis"] = AGGREGATED["/apis"]
    assert await discover(transport.client()) == first


async def test_preferred_versions_come_first_but_nothing_is_lost(aggregated):
    found = await discover(aggregated().client())
    assert [str(r.gvr) for r in found.preferred()] == [
        "core/v1/pods",
        "apps/v1/deployments",
        "batch/v1/jobs",
        "batch/v1beta1/cronjobs",
    ]


async def test_a_stale_version_is_named(aggregated):
    found = await discover(aggregated(stale={("batch", "v1")}).client())
    assert list(found.failed) == ["batch/v1"]
    assert found.find("batch", "jobs").gvr.version == "v1beta1"


async def test_a_version_without_discovery_is_named(plain):
    found = await discover(plain(broken={"/apis/apps/v1"}).client())
    assert found.failed == {"apps/v1": "because ServiceUnavailable"}
    assert found.find("batch", "jobs") is not None


async def test_a_failed_list_of_groups_is_an_error(plain):
    with pytest.raises(ServiceUnavailable):
        await discover(plain(broken={"/apis"}).client())


async def test_an_aggregated_server_without_core_group_has_none(script, answer, failure):
    groups = aggregated_doc(AGGREGATED["/apis"])
    transport = script(
        lambda r: failure(404, "NotFound") if r.path == "/api" else answer(200, groups, content_type=TYPE)
    )
    found = await discover(transport.client())
    assert [group.name for group in found.groups] == ["apps", "batch"]


@pytest.mark.parametrize(
    ("path", "code", "reason"),
    [
        pytest.param("/api", 403, "Forbidden", id="core hidden"),
        pytest.param("/apis", 403, "Forbidden", id="groups hidden"),
        pytest.param("/apis", 404, "NotFound", id="no groups"),
    ],
)
async def test_a_refused_root_is_an_error_and_not_an_empty_result(script, answer, failure, path, code, reason):
    """Namespaces would be finalized with everything of these groups still in them."""

    def serve(request):
        if request.path == path:
            return failure(code, reason)
        return answer(200, aggregated_doc(AGGREGATED[request.path]), content_type=TYPE)

    with pytest.raises(ApiError) as raised:
        await discover(script(serve).client())
    assert raised.value.status == code


async def test_a_version_named_by_its_group_and_not_served_has_failed(plain, failure):
    found = await discover(plain(missing={"/apis/apps/v1"}).client())
    assert list(found.failed) == ["apps/v1"]
    assert await resources_of(plain(missing={"/apis/apps/v1"}).client(), "apps", "v1") == ()


async def test_lookups(aggregated):
    mapper = Mapper(aggregated().client(), LoopClock())
    assert (await mapper.kind("", "Pod")).gvr == GVR("", "v1", "pods")
    assert (await mapper.kind("batch", "Job", "v1beta1")).gvr == GVR("batch", "v1beta1", "jobs")
    assert await mapper.kind("batch", "job") == await mapper.kind("batch", "Job")
    assert (await mapper.resource("batch", "jobs")).gvr.version == "v1"
    served = await mapper.kind("apps", "Deployment")
    assert served.gvr.plural == "deployments"
    assert served.subresources["scale"] == Subresource("scale", "autoscaling", "v1", "Scale")
    assert served.partial().gvr == served.gvr


@pytest.mark.parametrize(
    ("look", "text"),
    [
        (lambda m: m.kind("apps", "Pod"), 'no matches for kind "Pod" in group "apps"'),
        (lambda m: m.kind("", "POD"), 'no matches for kind "POD" in group ""'),
        (lambda m: m.kind("", "Pod", "v2"), 'no matches for kind "Pod" in version "v2"'),
        (lambda m: m.resource("apps", "x", "v1"), 'no matches for resource "x" in version "apps/v1"'),
    ],
    ids=["group", "capitals", "version", "plural"],
)
async def test_an_unserved_resource_is_not_found(aggregated, look, text):
    with pytest.raises(NoMatch) as raised:
        await look(Mapper(aggregated().client(), LoopClock()))
    assert str(raised.value) == text


class Fetches:
    """A mapper, and how often it has fetched discovery."""

    def __init__(self, transport, changed_s=never):
        self.mapper = Mapper(transport.client(), LoopClock(), changed_s)
        self._transport = transport

    async def after(self, kind="Pod"):
        """The fetches after a lookup."""
        with suppress(NoMatch):
            await self.mapper.kind("", kind)
        return len(self._transport.asked) // 2


async def test_discovery_is_fetched_when_it_is_old(aggregated):
    fetches = Fetches(aggregated())
    assert await asyncio.gather(*(fetches.after() for _ in range(5))) == [1] * 5
    assert await fetches.after() == 1
    await asyncio.sleep(REFRESH_S)
    assert await fetches.after() == 2


async def test_a_kind_that_is_not_served_costs_no_more_than_others(aggregated):
    fetches = Fetches(aggregated())
    for second in range(180):
        assert await fetches.after("Gone") <= 1 + second // REFRESH_S
        await asyncio.sleep(1)


async def test_a_kind_is_looked_for_after_definitions_have_changed(aggregated):
    """At once, and then after pauses that double: an API server serves a definition some time after its change."""
    clock, changes = LoopClock(), [float("-inf")]
    fetches = Fetches(aggregated(), lambda: changes[-1])
    assert await fetches.after("Gone") == 1
    await asyncio.sleep(5)
    changes.append(clock.monotonic())
    assert await fetches.after() == 1
    seen = []
    for _ in range(120):
        seen.append(await fetches.after("Gone"))
        await asyncio.sleep(0.1)
    assert seen[0] == 2
    assert seen[-1] == 1 + 6  # after 0, 0.5, 1, 2, 4 and 8 s


NULLS = {
    "verbs": {"resource": "odds", "responseKind": {"kind": "Odd"}, "scope": "Namespaced", "verbs": None},
    "all": {"resource": None, "responseKind": None, "scope": None, "verbs": None, "subresources": None},
    "kind": {"resource": "odds", "responseKind": {"kind": None}, "verbs": ["get"]},
    "subresource": {"resource": "odds", "responseKind": {"kind": "Odd"}, "subresources": [None, {"subresource": None}]},
}


@pytest.mark.parametrize("odd", NULLS.values(), ids=NULLS)
async def test_a_list_with_nulls_does_not_hide_other_groups(script, answer, odd):
    documents = {path: aggregated_doc(groups) for path, groups in AGGREGATED.items()}
    version = {"version": "v1", "freshness": None, "resources": [odd]}
    documents["/apis"]["items"].insert(0, {"metadata": {"name": "odd.example"}, "versions": [version]})
    found = await discover(script(lambda request: answer(200, documents[request.path], content_type=TYPE)).client())

    assert found.find("apps", "deployments") is not None
    assert not found.failed
    assert not any(served.supports("list") for served in found.all() if served.gvr.group == "odd.example")


@pytest.mark.parametrize(
    ("item", "failed"),
    [
        (None, None),
        ({"metadata": None, "versions": None}, None),
        ({"metadata": {"name": "odd.example"}, "versions": [None, {"resources": None}]}, None),
        ({"metadata": {"name": "odd.example"}, "versions": [{"version": "v1", "resources": "none"}]}, "odd.example/v1"),
        ({"metadata": {"name": "odd.example"}, "versions": ["v1"]}, "odd.example/*"),
        ("odd", "*"),
    ],
)
async def test_an_invalid_group_is_named_and_hides_no_other(script, answer, item, failed):
    documents = {path: aggregated_doc(groups) for path, groups in AGGREGATED.items()}
    documents["/apis"]["items"].insert(0, item)
    found = await discover(script(lambda request: answer(200, documents[request.path], content_type=TYPE)).client())

    assert list(found.failed) == ([failed] if failed else [])
    assert found.find("apps", "deployments") is not None
    assert found.complete(GVR("apps", "v1", "x")) == (failed != "*")
    assert found.complete(GVR("odd.example", "v1", "x")) == (failed is None)


@pytest.mark.parametrize(
    "body", [b"<html>", b"{}", b"null", b'{"kind": "Status"}', b'{"kind": "APIGroupList", "groups": [']
)
@pytest.mark.parametrize("kind", [TYPE, "application/json"])
@pytest.mark.parametrize("path", ["/api", "/apis"])
async def test_an_invalid_root_is_an_error_and_not_an_empty_result(script, answer, body, kind, path):
    documents = {path: aggregated_doc(groups) for path, groups in AGGREGATED.items()}

    def serve(request):
        if request.path == path:
            return Response(200, {"content-type": kind}, body)
        return answer(200, documents[request.path], content_type=TYPE)

    with pytest.raises(Unreadable):
        await discover(script(serve).client())


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"kind": "APIResourceList", "resources": 5}'])
async def test_a_version_with_an_invalid_list_has_failed(script, answer, body):
    def serve(request):
        if request.path == "/apis/apps/v1":
            return Response(200, {"content-type": "application/json"}, body)
        if request.path.startswith("/apis/"):
            return answer(200, {"kind": "APIResourceList", "resources": None})
        if request.path == "/api/v1":
            return answer(
                200, {"kind": "APIResourceList", "resources": [None, {"name": "pods", "kind": "Pod", "verbs": None}]}
            )
        return answer(200, PLAIN[request.path])

    found = await discover(script(serve).client())
    assert list(found.failed) == ["apps/v1"]
    assert found.find("", "pods") is not None


async def test_the_two_roots_can_use_different_formats(script, answer):
    """What is read as the other form would be a server without pods."""

    def serve(request):
        if request.path == "/api":
            return answer(200, aggregated_doc(AGGREGATED["/api"]), content_type=TYPE)
        if request.path == "/apis":
            return answer(200, {"kind": "APIGroupList", "groups": None})
        raise AssertionError(request.path)

    assert (await discover(script(serve).client())).find("", "pods") is not None
