"""Conversion webhooks, over real connections to a server of this process."""

import asyncio
import base64
import json
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import LoopClock
from kcm_cli.rest.transport import Request
from kcm_cli.runtime.turns import Turns
from kcm_cli.sandbox.apiserver.crd import conversion
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.types import ApiError
from kcm_cli.sandbox.apiserver.unconverted import Unconverted, one_request
from kcm_cli.sandbox.transport import InProcessTransport
from tests.kit.api import Answer, Api
from tests.kit.embedded import ADMIN
from tests.kit.hooks import HookServer, Tree

pytestmark = pytest.mark.real_time

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
REGISTRATION = "/apis/admissionregistration.k8s.io/v1"


class Hook(HookServer):
    """Converts spec.a of v1 to spec.b of v2 and back. ``bend`` changes the response.

    admitted: requests for admission. Those for ``mutated`` get an exclamation mark in the spec.
    """

    def __init__(self, api: Api, certificates: Certificates, folder: Path) -> None:
        self.admitted: list[Tree] = []
        self.bend: Callable[[Tree], Tree | None] = lambda review: None
        self.api = api
        super().__init__(certificates, folder, self._response)

    def _response(self, review: Tree) -> Tree:
        request = review.pop("request")
        if review["kind"] == "AdmissionReview":
            return {**review, "response": self._admitted(request)}
        made = [converted(one, request["desiredAPIVersion"]) for one in request["objects"]]
        review["response"] = {"uid": request["uid"], "convertedObjects": made, "result": {"status": "Success"}}
        return self.bend(review) or review

    def _admitted(self, request: Tree) -> Tree:
        self.admitted.append(request)
        response = {"uid": request["uid"], "allowed": True}
        if request["name"] != "mutated" or request["operation"] == "DELETE":
            return response
        ((field, value),) = request["object"]["spec"].items()
        patch = [{"op": "replace", "path": f"/spec/{field}", "value": f"{value}!"}]
        return {**response, "patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(patch).encode()).decode()}

    async def asks(self, kind: str, **more: Any) -> None:
        """Register it for admission of things in v1. ``kind``: mutating or validating."""
        rule = {"operations": ["*"], "apiGroups": ["x.test"], "apiVersions": ["v1"], "resources": ["things"]}
        webhook = {"name": "a.x.test", "admissionReviewVersions": ["v1"], "sideEffects": "None", "rules": [rule]}
        doc = {"metadata": {"name": "a"}, "webhooks": [{**webhook, "clientConfig": self.config("/a"), **more}]}
        await self.api.make(f"{REGISTRATION}/{kind}webhookconfigurations", doc)


def converted(doc: Tree, version: str) -> Tree:
    spec = doc["spec"]
    value = spec.get("a", spec.get("b"))
    return {**doc, "apiVersion": version, "spec": {"a" if version.endswith("v1") else "b": value}}


def version_of(name: str, field: str, **more: Any) -> Tree:
    spec = {"type": "object", "properties": {field: {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    selectable = [{"jsonPath": f".spec.{field}"}]
    head = {"name": name, "served": True, "storage": name == "v1", "schema": schema}
    return {**head, "selectableFields": selectable, **more}


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    """Valid at the real time, since the connections are real."""
    return Certificates.load(None, LoopClock().now())


@pytest.fixture
async def hook(api: Api, certificates: Certificates, tmp_path: Path) -> AsyncIterator[Hook]:
    async with Hook(api, certificates, tmp_path) as made:
        await define(made)
        yield made


async def define(made: Hook) -> None:
    webhook = {"conversionReviewVersions": ["v1"], "clientConfig": made.config("/c")}
    spec = {
        "group": "x.test",
        "scope": "Cluster",
        "names": {"plural": "things", "kind": "Thing"},
        "versions": [version_of("v1", "a"), version_of("v2", "b")],
        "conversion": {"strategy": "Webhook", "webhook": webhook},
    }
    await made.api.make(DEFINITIONS, {"metadata": {"name": "things.x.test"}, "spec": spec})
    while (await made.api.get(path("v1"))).status != 200:
        await asyncio.sleep(0.01)


def path(version: str, name: str = "") -> str:
    return f"/apis/x.test/{version}/things" + (f"/{name}" if name else "")


def thing(version: str, name: str = "a", **spec: str) -> Tree:
    return {"apiVersion": f"x.test/{version}", "kind": "Thing", "metadata": {"name": name}, "spec": spec}


async def test_each_version_shows_what_the_webhook_makes_of_the_stored_one(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    assert hook.asked == []
    assert (await hook.api.get(path("v2", "a"))).doc["spec"] == {"b": "1"}
    assert [item["spec"] for item in (await hook.api.get(path("v2"))).doc["items"]] == [{"b": "1"}]
    assert len(hook.asked) == 1, "what has not changed is not asked for again"


async def test_what_is_stored_gets_the_defaults_of_its_version_and_what_the_webhook_makes_gets_none(hook: Hook) -> None:
    definition = (await hook.api.get(DEFINITIONS + "/things.x.test")).doc
    await hook.api.make(path("v1"), thing("v1"))
    for version, name in zip(definition["spec"]["versions"], ("a", "b"), strict=True):
        fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        fields[name]["default"] = f"default of {name}"
        fields["more"] = {"type": "string", "default": f"more of {name}"}
    await hook.api.put(DEFINITIONS + "/things.x.test", definition)
    while (await hook.api.get(path("v1", "a"))).doc["spec"] != {"a": "default of a", "more": "more of a"}:
        await asyncio.sleep(0.01)
    assert (await hook.api.get(path("v2", "a"))).doc["spec"] == {"b": "default of a"}
    assert [item["spec"] for item in (await hook.api.get(path("v2"))).doc["items"]] == [{"b": "default of a"}]
    dry = await hook.api.post(path("v2") + "?dryRun=All", thing("v2", "other"))
    assert dry.doc["spec"] == {"b": "default of b"}
    assert (await hook.api.merge(path("v2", "a"), {"metadata": {"labels": {"k": "v"}}})).doc["spec"] == {
        "b": "default of a"
    }


async def test_more_objects_than_are_cached_are_converted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_KEPT", 2)
    for name in "abcd":
        await hook.api.make(path("v1"), thing("v1", name, a=name))
    assert [item["spec"]["b"] for item in (await hook.api.get(path("v2"))).doc["items"]] == [*"abcd"]


async def test_more_objects_than_are_cached_are_deleted(hook: Hook, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_KEPT", 2)
    for name in "abcd":
        await hook.api.make(path("v1"), thing("v1", name, a=name))
    assert [item["spec"]["b"] for item in (await hook.api.delete(path("v2"))).doc["items"]] == [*"abcd"]


async def test_a_list_converts_each_object_once_whatever_leaves_the_cache_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(conversion, "_KEPT", 1)
    calls: list[str] = []

    class Busy(conversion.Webhook):
        """Each conversion takes until another request is done."""

        async def convert(self, doc: Tree, version: str) -> Tree:
            calls.append(doc["metadata"]["uid"])
            assert len(calls) < 20, "the list never ends"
            if not doc["metadata"]["uid"].startswith("other"):
                await self.prepare([stored(f"other{len(calls)}")], version, dict, cached=True)
            return {**doc, "apiVersion": version}

    def stored(uid: str) -> Tree:
        return {**thing("v1"), "metadata": {"uid": uid, "resourceVersion": "1"}}

    webhook = Busy({}, None, random.Random(1))  # type: ignore[arg-type]  # nothing is sent
    docs = [stored(uid) for uid in "abc"]
    await webhook.prepare(docs, "x.test/v2", dict, cached=True)
    assert all(webhook.prepared(doc, "x.test/v2") for doc in docs)
    assert sorted(uid for uid in calls if uid in "abc") == ["a", "b", "c"]


class Copies(conversion.Webhook):
    """Only changes the version, or fails."""

    failure: ApiError | None = None

    def __init__(self) -> None:
        super().__init__({}, None, random.Random(1))  # type: ignore[arg-type]  # nothing is sent

    async def convert(self, doc: Tree, version: str) -> Tree:
        if self.failure is not None:
            raise self.failure
        return {**doc, "apiVersion": version}


def large(uid: str) -> Tree:
    return {**thing("v1", a="x" * 1000), "metadata": {"uid": uid, "resourceVersion": "1"}}


async def test_what_is_cached_is_limited_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversion, "_KEPT_BYTES", 2500)
    webhook, docs = Copies(), [large(uid) for uid in "abcd"]

    def known() -> list[str]:
        return [doc["metadata"]["uid"] for doc in docs if webhook.prepared(doc, "x.test/v2")]

    await webhook.prepare(docs, "x.test/v2", dict, cached=True)
    assert known() == [*"abcd"], "until the next await"
    await asyncio.sleep(0)
    assert known() == [*"cd"]


def test_a_failure_is_raised_in_its_own_request_only() -> None:
    webhook, doc = Copies(), large("a")
    webhook.failure = ApiError(500, "", "down")

    async def request(*, left: bool) -> object:
        with one_request():
            try:
                return webhook.known(doc, "x.test/v2")
            except Unconverted as needed:
                await needed.convert()
            return None if left else webhook.known(doc, "x.test/v2")

    assert asyncio.run(request(left=True)) is None, "the client is gone"
    with pytest.raises(ApiError, match="down"):
        asyncio.run(request(left=False))
    webhook.failure = None
    assert asyncio.run(request(left=False)) == {**doc, "apiVersion": "x.test/v2"}


async def test_requests_for_one_object_call_the_webhook_and_lists_use_what_is_known(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    assert (await hook.api.get(path("v2", "a"))).status == 200
    hook.bend = lambda review: {"response": None}
    assert (await hook.api.get(path("v2"))).status == 200
    for found in (await hook.api.get(path("v2", "a")), await hook.api.delete(path("v2", "a")), await merged(hook, "2")):
        assert (found.status, found.message.partition(" failed: ")[0]) == (
            500,
            "conversion webhook for x.test/v1, Kind=Thing",
        )


async def merged(hook: Hook, value: str) -> Any:
    return await hook.api.merge(path("v2", "a"), {"spec": {"b": value}})


async def applied(hook: Hook, config: Tree, more: str = "", version: str = "v2") -> Any:
    target = path(version, "a") + "?fieldManager=m" + more
    return await hook.api.call("PATCH", target, config, content_type="application/apply-patch+yaml")


async def test_fields_of_managers_are_compared_in_their_versions(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    config = {key: value for key, value in thing("v2", b="2").items() if key != "metadata"}
    refused = await applied(hook, config)
    assert refused.status == 409 and refused.message.endswith("using x.test/v1: .spec.a")
    forced = (await applied(hook, config, "&force=true")).doc["metadata"]["managedFields"]
    fields = {one["manager"]: one["fieldsV1"]["f:spec"] for one in forced}
    assert fields == {"m": {"f:b": {}}, "test": {}}
    later = (await merged(hook, "3")).doc["metadata"]["managedFields"]
    assert [(one["manager"], one["apiVersion"], one["fieldsV1"]["f:spec"]) for one in later] == [
        ("test", "x.test/v1", {}),
        ("test", "x.test/v2", {"f:b": {}}),
    ]


async def test_changes_remove_managers_whose_version_the_webhook_does_not_make(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    managers = (await merged(hook, "2")).doc["metadata"]["managedFields"]
    assert [one["apiVersion"] for one in managers] == ["x.test/v1", "x.test/v2"]
    hook.bend = lambda review: {"response": None}
    config = {"apiVersion": "x.test/v1", "kind": "Thing", "spec": {"a": "3"}}
    refused = await applied(hook, config, "&force=true", version="v1")
    assert refused.status == 500 and refused.message.startswith("conversion webhook for x.test/v1, Kind=Thing failed: ")
    changed = await hook.api.merge(path("v1", "a"), {"spec": {"a": "3"}})
    assert changed.status == 200 and changed.doc["spec"] == {"a": "3"}
    assert "managedFields" not in changed.doc["metadata"]


@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("ask", ["get", "list", "merge", "apply"])
async def test_a_request_ends_with_the_definition_with_which_it_began(hook: Hook, ask: str, gone: bool) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    config = {"apiVersion": "x.test/v2", "kind": "Thing", "spec": {"b": "1"}}

    def change(review: Tree) -> None:
        hook.bend = lambda review: None
        store, gvr = hook.api.server.store, GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions")
        current = store.get(gvr, "", "things.x.test")
        assert current is not None
        doc: Tree = current.copy()
        doc["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["description"] = "changed"
        doc["metadata"]["generation"] += 1
        if gone:
            store.delete(gvr, "", "things.x.test")
        else:
            store.update(gvr, "", "things.x.test", doc)

    hook.bend = change
    asks: dict[str, Callable[[], Awaitable[Answer]]] = {
        "get": lambda: hook.api.get(path("v2", "a")),
        "list": lambda: hook.api.get(path("v2")),
        "merge": lambda: merged(hook, "2"),
        "apply": lambda: applied(hook, config, "&force=true"),
    }
    found = await asks[ask]()
    assert found.status == 200, found.message


async def test_a_running_watch_converts_only_changed_objects(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    revision = (await hook.api.get(path("v1"))).doc["metadata"]["resourceVersion"]
    hook.bend = lambda review: {"response": None}
    assert (await hook.api.get(path("v2") + f"?watch=true&timeoutSeconds=-1&resourceVersion={revision}")).status == 200
    assert hook.asked == []


@pytest.mark.parametrize("start", ["0", "before"])
async def test_watches_use_what_is_converted(hook: Hook, start: str) -> None:
    before = (await hook.api.get(path("v1"))).doc["metadata"]["resourceVersion"]
    await hook.api.make(path("v1"), thing("v1", a="1"))
    assert (await hook.api.get(path("v2", "a"))).status == 200
    hook.bend = lambda review: {"response": None}
    query = (("watch", "true"), ("resourceVersion", before if start == "before" else start))

    async def first() -> Tree:
        async with InProcessTransport(hook.api.server.api, ADMIN).stream(Request("GET", path("v2"), query)) as stream:
            async for chunk in stream.chunks:
                return cast("Tree", json.loads(chunk))
        raise AssertionError("the watch has no events")

    event = await first()
    assert (event["type"], event["object"]["spec"]) == ("ADDED", {"b": "1"})


@pytest.mark.parametrize("start", ["initial", "before"])
async def test_a_watch_sends_more_objects_than_are_cached_in_turns(
    hook: Hook, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    before = (await hook.api.get(path("v1"))).doc["metadata"]["resourceVersion"]
    for name in "abcd":
        await hook.api.make(path("v1"), thing("v1", name, a=name))
    monkeypatch.setattr(conversion, "_KEPT", 1)
    monkeypatch.setattr(Turns, "is_over", lambda self: True)
    query = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": "60"}
    if start == "initial":
        query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
    else:
        query |= {"resourceVersion": before}
    request, wanted = Request("GET", path("v2"), tuple(query.items())), 5 if start == "initial" else 4
    events: list[Tree] = []
    async with InProcessTransport(hook.api.server.api, ADMIN).stream(request) as stream:
        async for chunk in stream.chunks:
            events += map(json.loads, chunk.splitlines())
            if len(events) == wanted:
                break
    assert [(event["type"], event["object"]["spec"]["b"]) for event in events[:4]] == [("ADDED", n) for n in "abcd"]
    assert [event["type"] for event in events[4:]] == ["BOOKMARK"] * (wanted - 4)
    assert len(hook.asked) == 4, "each object is converted once"


def shown(request: Tree) -> list[Any]:
    """The versions of a request for admission, and the specs that it has."""
    found = [request["requestKind"]["version"], request["kind"]["version"]]
    for doc in (request["object"], request["oldObject"]):
        found.append(doc and (doc["apiVersion"], doc["spec"]))
    return found


@pytest.mark.parametrize("kind", ["mutating", "validating"])
async def test_webhooks_for_admission_get_the_version_that_they_ask_for(hook: Hook, kind: str) -> None:
    await hook.asks(kind, matchConditions=[{"name": "c", "expression": "has(object.spec.a)"}])
    name, mark = ("mutated", "!") if kind == "mutating" else ("a", "")
    made = await hook.api.make(path("v2"), thing("v2", name, b="1"))
    assert (made["apiVersion"], made["spec"]) == ("x.test/v2", {"b": f"1{mark}"})
    assert (await hook.api.get(path("v1", name))).doc["spec"] == {"a": f"1{mark}"}
    changed = await hook.api.merge(path("v2", name), {"spec": {"b": "2"}})
    assert changed.doc["spec"] == {"b": f"2{mark}"}
    one, two = ("x.test/v1", {"a": f"1{mark}"}), ("x.test/v1", {"a": "2"})
    assert list(map(shown, hook.admitted)) == [
        ["v2", "v1", ("x.test/v1", {"a": "1"}), None],
        ["v2", "v1", two, one],
    ]


async def test_webhooks_for_admission_get_what_is_deleted(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    await hook.asks("validating")
    assert (await hook.api.delete(path("v2", "a"))).status == 200
    assert list(map(shown, hook.admitted)) == [["v2", "v1", None, ("x.test/v1", {"a": "1"})]]


async def test_a_failing_conversion_for_admission_refuses_the_write(hook: Hook) -> None:
    await hook.asks("validating")
    hook.bend = lambda review: {"response": None}
    refused = await hook.api.post(path("v2"), thing("v2", b="1"))
    assert refused.status == 500
    assert refused.message.startswith("Internal error occurred: conversion webhook for x.test/v2, Kind=Thing failed: ")
    assert hook.admitted == []


async def test_without_a_conversion_webhook_only_the_version_changes_for_admission(hook: Hook) -> None:
    none = {"strategy": "None", "webhook": None}
    versions = [version_of("v1", "a", storage=False), version_of("v2", "b", storage=True)]
    await hook.api.merge(f"{DEFINITIONS}/things.x.test", {"spec": {"conversion": none, "versions": versions}})
    await asyncio.sleep(0.1)
    await hook.asks("mutating")
    made = await hook.api.make(path("v2"), thing("v2", "mutated", b="1"))
    assert list(map(shown, hook.admitted)) == [["v2", "v1", ("x.test/v1", {"b": "1"}), None]]
    assert (made["apiVersion"], made["spec"]) == ("x.test/v2", {"b": "1!"})


async def test_policies_see_the_version_that_they_ask_for(hook: Hook) -> None:
    rule = {"operations": ["*"], "apiGroups": ["x.test"], "apiVersions": ["v1"], "resources": ["things"]}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": "object.spec.a != 'no'"}]}
    await hook.api.make(f"{REGISTRATION}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p", "validationActions": ["Deny"]}}
    await hook.api.make(f"{REGISTRATION}/validatingadmissionpolicybindings", binding)
    refused = await hook.api.post(path("v2"), thing("v2", b="no"))
    assert refused.status == 422 and "failed expression: object.spec.a != 'no'" in refused.message
    assert (await hook.api.post(path("v2"), thing("v2", b="yes"))).status == 201


async def test_mutating_policies_call_no_conversion_webhook(hook: Hook) -> None:
    rule = {"operations": ["*"], "apiGroups": ["x.test"], "apiVersions": ["v1"], "resources": ["things"]}
    labels = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"seen": object.apiVersion.split("/")[1]}}]'
    mutation = {"patchType": "JSONPatch", "jsonPatch": {"expression": labels}}
    spec = {"matchConstraints": {"resourceRules": [rule]}, "mutations": [mutation], "reinvocationPolicy": "Never"}
    await hook.api.make(f"{REGISTRATION}/mutatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    binding = {"metadata": {"name": "p"}, "spec": {"policyName": "p"}}
    await hook.api.make(f"{REGISTRATION}/mutatingadmissionpolicybindings", binding)
    for version, field in (("v1", "a"), ("v2", "b")):
        made = await hook.api.make(path(version), thing(version, version, **{field: "1"}))
        assert made["metadata"]["labels"] == {"seen": version}


async def names(hook: Hook, version: str, **query: str) -> list[str]:
    found = await hook.api.call("GET", path(version), query=query)
    return [one["metadata"]["name"] for one in found.doc["items"]]


async def test_selectors_see_what_is_converted(hook: Hook) -> None:
    hook.bend = each(lambda doc: doc["metadata"].update(labels={"is": doc["apiVersion"][-2:]}))
    for name in "abc":
        await hook.api.make(path("v1"), thing("v1", name, a=name))
    assert await names(hook, "v2", fieldSelector="spec.b=b") == ["b"]
    assert await names(hook, "v2", fieldSelector="spec.b!=b", limit="1") == ["a"]
    assert await names(hook, "v2", fieldSelector="metadata.name=a,spec.b=b") == []
    assert await names(hook, "v1", fieldSelector="spec.a=b") == ["b"]
    assert await names(hook, "v2", labelSelector="is=v2") == ["a", "b", "c"]
    assert await names(hook, "v2", labelSelector="is=v1") == []


async def test_selectors_of_watches_see_what_is_converted(hook: Hook) -> None:
    before = (await hook.api.get(path("v1"))).doc["metadata"]["resourceVersion"]
    for name, value in (("a", "1"), ("b", "2")):
        await hook.api.make(path("v1"), thing("v1", name, a=value))
    await hook.api.merge(path("v1", "b"), {"spec": {"a": "3"}})
    query = {"watch": "true", "resourceVersion": before, "fieldSelector": "spec.b=2"}
    events: list[Tree] = []
    request = Request("GET", path("v2"), tuple(query.items()))
    async with InProcessTransport(hook.api.server.api, ADMIN).stream(request) as stream:
        async for chunk in stream.chunks:
            events += map(json.loads, chunk.splitlines())
            if len(events) == 2:
                break
    shown = [(event["type"], event["object"]["metadata"]["name"], event["object"]["spec"]) for event in events]
    assert shown == [("ADDED", "b", {"b": "2"}), ("DELETED", "b", {"b": "2"})]
    assert (await hook.api.get(path("v2"))).doc["items"][1]["spec"] == {"b": "3"}, "what a list shows later"


async def test_objects_are_converted_to_the_storage_version(hook: Hook) -> None:
    made = await hook.api.make(path("v2"), thing("v2", b="1"))
    assert (made["apiVersion"], made["spec"]) == ("x.test/v2", {"b": "1"})
    seen = len(hook.asked)
    assert (await hook.api.get(path("v1", "a"))).doc["spec"] == {"a": "1"}
    assert len(hook.asked) == seen, "the stored version needs no webhook"
    assert (await hook.api.merge(path("v2", "a"), {"spec": {"b": "2"}})).doc["spec"] == {"b": "2"}
    assert (await hook.api.get(path("v1", "a"))).doc["spec"] == {"a": "2"}


async def test_a_dry_run_is_converted_and_stores_nothing(hook: Hook) -> None:
    assert (await hook.api.post(path("v2") + "?dryRun=All", thing("v2", b="1"))).doc["spec"] == {"b": "1"}
    assert len(hook.asked) == 2
    assert (await hook.api.get(path("v1", "a"))).status == 404


async def test_a_dry_run_of_an_existing_object_is_not_converted(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    hook.bend = lambda review: {"response": None}
    assert (await hook.api.post(path("v2") + "?dryRun=All", thing("v2", b="1"))).status == 409
    assert (await hook.api.post(path("v2"), thing("v2", b="1"))).status == 500


async def test_a_pending_deletion_keeps_the_storage_version(hook: Hook) -> None:
    doc = thing("v1", a="1")
    doc["metadata"]["finalizers"] = ["x.y/z"]
    await hook.api.make(path("v1"), doc)
    left = (await hook.api.delete(path("v2", "a"))).doc
    assert (left["apiVersion"], left["spec"]) == ("x.test/v2", {"b": "1"})
    assert (await hook.api.get(path("v1", "a"))).doc["spec"] == {"a": "1"}


async def test_only_labels_and_annotations_of_metadata_can_be_converted(hook: Hook) -> None:
    def bend(review: Tree) -> None:
        meta = review["response"]["convertedObjects"][0]["metadata"]
        meta |= {"labels": {"k": "v"}, "generation": 77}

    hook.bend = bend
    await hook.api.make(path("v1"), thing("v1", a="1"))
    meta = (await hook.api.get(path("v2", "a"))).doc["metadata"]
    assert (meta["labels"], meta["generation"]) == ({"k": "v"}, 1)


def answer(**response: Any) -> Callable[[Tree], None]:
    return lambda review: review["response"].update(response)


def each(change: Callable[[Tree], object]) -> Callable[[Tree], None]:
    def bend(review: Tree) -> None:
        change(review["response"]["convertedObjects"][0])

    return bend


def meta(**fields: Any) -> Callable[[Tree], None]:
    return each(lambda doc: doc["metadata"].update(fields))


@pytest.mark.parametrize(
    ("bend", "problem"),
    [
        pytest.param(answer(result={"status": "Failure", "message": "no way"}), "failed: no way", id="refused"),
        pytest.param(answer(result={}), "failed: response.result.status was '', not 'Success'", id="no result"),
        pytest.param(answer(convertedObjects=[]), "returned 0 objects, expected 1", id="nothing"),
        pytest.param(answer(uid="other"), 'got "other"', id="another question"),
        pytest.param(lambda review: review.pop("response") and None, "failed: no response provided", id="no response"),
        pytest.param(lambda review: review.update(kind="Odd"), 'failed: no kind "Odd" is registered', id="kind"),
        pytest.param(
            each(lambda doc: doc.update(apiVersion="x/v9")),
            "invalid groupVersion (expected x.test/v2, received x/v9)",
            id="version",
        ),
        pytest.param(
            each(lambda doc: doc.update(kind="Other")), "invalid kind (expected Thing, received Other)", id="its kind"
        ),
        pytest.param(
            each(lambda doc: doc.pop("metadata")), "returned invalid object: must have the same name", id="no metadata"
        ),
        pytest.param(meta(name="other"), "returned invalid object: must have the same name: a != other", id="name"),
        pytest.param(meta(uid=""), "returned invalid object: must have the same UID", id="uid"),
        pytest.param(meta(labels={"k": 1}), "metadata.labels[k] must be a string, but is int64", id="number in labels"),
        pytest.param(meta(labels={"bad key!": "x"}), "returned invalid metadata: metadata.labels:", id="bad label"),
        pytest.param(lambda review: "text", "cannot unmarshal string into Go value", id="not an object"),
    ],
)
async def test_invalid_responses_are_refused(hook: Hook, bend: Callable[[Tree], object], problem: str) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    hook.bend = bend
    for found in (
        await hook.api.get(path("v2", "a")),
        await hook.api.get(path("v2") + "?limit=500"),
        await hook.api.delete(path("v2", "a")),
    ):
        assert found.status == 500
        assert found.message.startswith("conversion webhook for x.test/v1, Kind=Thing ")
        assert problem in found.message
    assert (await hook.api.post(path("v2"), thing("v2", "b", b="1"))).status == 500
    assert (await hook.api.get(path("v1", "b"))).status == 404, "what cannot be converted is not stored"


async def test_lists_from_the_watch_cache_are_told_to_retry(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    hook.bend = lambda review: {"response": None}
    for query in ("", "?labelSelector=!x&limit=5", "?fieldSelector=spec.b=1"):
        found = await hook.api.get(path("v2") + query)
        assert (found.status, found.headers["retry-after"]) == (429, "1")
        why = "storage is (re)initializing: failed to list x.test/v2, Kind=Thing: conversion webhook for x.test/v1, "
        assert found.message.startswith(why)


async def test_a_list_needs_no_other_objects(hook: Hook) -> None:
    for name in "ab":
        await hook.api.make(path("v1"), thing("v1", name, a=name))
    assert await names(hook, "v2", fieldSelector="metadata.name=b") == ["b"]
    hook.bend = lambda review: {"response": None}
    assert await names(hook, "v2", fieldSelector="metadata.name=b") == ["b"]
    assert (await hook.api.get(path("v2"))).status == 429


async def test_errors_of_applies_tell_what_could_not_be_converted(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    config = {key: value for key, value in thing("v1", a="1").items() if key != "metadata"}
    await applied(hook, config, version="v1")
    config |= {"apiVersion": "x.test/v2", "spec": {"b": "2"}}
    fails: list[bool] = []
    hook.bend = lambda review: {"response": None} if fails.pop(0) else None
    found = set[str]()
    for good in range(8):
        fails[:] = [False] * good + [True] + [False] * 16
        answer = await applied(hook, config, "&force=true&dryRun=All")
        found.add(answer.message.partition("conversion webhook")[0] if answer.status == 500 else "")
    failed = "failed to prune fields: failed"
    assert found >= {
        f"{failed} to convert merged object to last applied version: ",
        f"{failed} add back owned items: failed to convert merged object at version x.test/v2: ",
    }


async def test_null_for_an_object(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    hook.bend = lambda review: review["response"].update(convertedObjects=[None])
    assert (await hook.api.get(path("v2", "a"))).message == "unexpected end of JSON input"


async def test_an_unreachable_webhook(hook: Hook) -> None:
    await hook.api.make(path("v1"), thing("v1", a="1"))
    await hook.__aexit__()
    found = await hook.api.get(path("v2", "a"))
    assert "connect: connection refused" in found.message
    assert (await hook.api.get(path("v1", "a"))).status == 200
