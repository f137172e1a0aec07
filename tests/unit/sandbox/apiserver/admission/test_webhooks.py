"""Admission webhooks, over real connections to a server of this process."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from tests.kit.api import CONFIG_MAPS, Answer, Api
from tests.kit.hooks import HookServer, Tree

pytestmark = pytest.mark.real_time

HOOKS = "/apis/admissionregistration.k8s.io/v1"
RULE = {"operations": ["*"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}


class Backend(HookServer):
    """Responds to reviews with the result of ``reply``; bytes and {"raw": ...} are the whole response."""

    def __init__(self, api: Api, certificates: Certificates, folder: Path) -> None:
        self.reply: Callable[[Tree], Any] = lambda request: {"allowed": True}
        self.api = api
        super().__init__(certificates, folder, self._response)

    def _response(self, review: Tree) -> bytes | Tree:
        answer = self.reply(review["request"])
        if not isinstance(answer, dict):
            return cast(bytes, answer)
        if "raw" in answer:
            return cast(Tree, answer["raw"])
        response = {"uid": review["request"]["uid"], **answer}
        return {"apiVersion": review["apiVersion"], "kind": "AdmissionReview", "response": response}

    async def configure(self, kind: str, *webhooks: Tree, name: str = "c") -> None:
        """kind: mutating or validating."""
        filled = [
            {
                "name": f"w{index}.example.com",
                "admissionReviewVersions": ["v1"],
                "sideEffects": "None",
                "clientConfig": self.config(f"/{index}"),
                "rules": [RULE],
                **webhook,
            }
            for index, webhook in enumerate(webhooks)
        ]
        await self.api.make(f"{HOOKS}/{kind}webhookconfigurations", {"metadata": {"name": name}, "webhooks": filled})


@pytest.fixture(scope="module")
def certificates() -> Certificates:
    """Valid at the real time, since the connections are real."""
    return Certificates.load(None, LoopClock().now())


@pytest.fixture
async def backend(api: Api, certificates: Certificates, tmp_path: Path) -> AsyncIterator[Backend]:
    async with Backend(api, certificates, tmp_path) as made:
        yield made


def patched(*operations: Tree) -> Tree:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(json.dumps(list(operations)).encode()).decode(),
    }


async def create(api: Api, name: str = "m", query: str = "", **content: Any) -> Answer:
    namespace = await api.namespace(account=False)
    return await api.post(f"/api/v1/namespaces/{namespace}/configmaps{query}", {"metadata": {"name": name}, **content})


async def test_a_review_has_all_facts_of_the_write(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    made = await create(api, data={"a": "b"})
    assert made.status == 201
    review = backend.asked[0]
    assert (review["apiVersion"], review["kind"]) == ("admission.k8s.io/v1", "AdmissionReview")
    request = review["request"]
    uid, shown = request.pop("uid"), request.pop("object")
    assert len(uid) == 36
    assert shown["apiVersion"] == "v1" and shown["kind"] == "ConfigMap" and shown["data"] == {"a": "b"}
    assert shown["metadata"]["uid"]
    assert request == {
        "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resource": {"group": "", "version": "v1", "resource": "configmaps"},
        "requestKind": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "requestResource": {"group": "", "version": "v1", "resource": "configmaps"},
        "name": "m",
        "namespace": made.doc["metadata"]["namespace"],
        "operation": "CREATE",
        "userInfo": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }


async def test_a_whole_float_is_shown_as_it_is_written(api: Api, backend: Backend) -> None:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    spec = {
        "group": "floats.test",
        "scope": "Cluster",
        "names": {"plural": "floats", "kind": "Float"},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}],
    }
    definition = {"metadata": {"name": "floats.floats.test"}, "spec": spec}
    await api.make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    while (await api.get("/apis/floats.test/v1/floats")).status != 200:
        await asyncio.sleep(0.01)
    await backend.configure("validating", {"rules": [{**RULE, "apiGroups": ["floats.test"], "resources": ["floats"]}]})
    body = {"apiVersion": "floats.test/v1", "kind": "Float", "metadata": {"name": "a"}, "whole": 1.0, "half": [0.5]}
    assert (await api.post("/apis/floats.test/v1/floats", body)).status == 201
    shown = backend.asked[0]["request"]["object"]
    assert repr([shown["whole"], shown["half"]]) == "[1, [0.5]]"


@pytest.mark.parametrize(
    ("status", "code", "reason", "message"),
    [
        pytest.param(None, 400, None, "without explanation", id="silent"),
        pytest.param({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no", id="message"),
        pytest.param({"reason": "Conflict"}, 400, "Conflict", ": Conflict", id="reason only"),
        pytest.param({"message": "x", "code": 200}, 400, None, ": x", id="success is no code of a refusal"),
        pytest.param({"message": "tea", "code": 418, "status": "Success"}, 418, None, ": tea", id="any code"),
    ],
)
async def test_a_refusal_is_the_webhooks_own_status(
    api: Api, backend: Backend, status: Tree | None, code: int, reason: str | None, message: str
) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: {"allowed": False, **({} if status is None else {"status": status})}
    answer = await create(api)
    text = f'admission webhook "w0.example.com" denied the request{" " if message[0] != ":" else ""}{message}'
    assert (answer.status, answer.doc.get("reason"), answer.message) == (code, reason, text)
    assert answer.doc["status"] == "Failure"


async def test_a_refusal_says_when_to_try_again(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: {
        "allowed": False,
        "status": {"code": 429, "message": "later", "details": {"retryAfterSeconds": 3}},
    }
    answer = await create(api)
    assert (answer.status, answer.headers.get("retry-after")) == (429, "3")


async def test_a_generated_name_is_known_when_the_object_is_validated(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {})
    await backend.configure("validating", {}, name="v")
    namespace = await api.namespace(account=False)
    made = await api.post(f"/api/v1/namespaces/{namespace}/configmaps", {"metadata": {"generateName": "m-"}})
    assert [review["request"].get("name") for review in backend.asked] == [None, made.doc["metadata"]["name"]]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        pytest.param(
            "pods/p/exec?command=ls&command=-l&stdout=true&tty=false&container=c",
            {"kind": "PodExecOptions", "command": ["ls", "-l"], "stdout": True, "container": "c"},
            id="exec",
        ),
        pytest.param("pods/p/attach?stdin=1", {"kind": "PodAttachOptions", "stdin": True}, id="attach"),
        pytest.param(
            "pods/p/portforward?ports=80&ports=081,82",
            {"kind": "PodPortForwardOptions", "ports": [80, 81, 82]},
            id="port forwarding",
        ),
        pytest.param("services/p/proxy/x/y", {"kind": "ServiceProxyOptions", "path": "/x/y"}, id="proxy"),
        pytest.param("pods/p/proxy", {"kind": "PodProxyOptions"}, id="proxy without path"),
    ],
)
async def test_connections_can_be_refused(api: Api, backend: Backend, path: str, expected: Tree) -> None:
    rule = {**RULE, "operations": ["CONNECT"], "resources": ["*/*"]}
    await backend.configure("validating", {"rules": [rule]})
    backend.reply = lambda request: {"allowed": False, "status": {"code": 403, "message": "nobody connects"}}
    answer = await api.post(f"/api/v1/namespaces/{await api.namespace(account=False)}/{path}", {})
    assert (answer.status, answer.message) == (
        403,
        'admission webhook "w0.example.com" denied the request: nobody connects',
    )
    request = backend.asked[-1]["request"]
    assert request["object"] == {"apiVersion": "v1", **expected}
    assert (request["operation"], request["name"], request["options"]) == ("CONNECT", "p", None)
    assert request["kind"] == {"group": "", "version": "v1", "kind": expected["kind"]}


@pytest.mark.parametrize(
    ("ports", "why"),
    [
        ("80,", 'parsing "": invalid syntax'),
        ("-1", 'parsing "-1": invalid syntax'),
        ("65536", 'parsing "65536": value out of range'),
        ("1" + "0" * 5000, f'parsing "1{"0" * 5000}": value out of range'),
    ],
)
async def test_ports_that_are_none_are_refused(api: Api, ports: str, why: str) -> None:
    answer = await api.get(f"/api/v1/namespaces/{await api.namespace(account=False)}/pods/p/portforward?ports={ports}")
    assert (answer.status, answer.message) == (400, f"cannot convert to []int32: strconv.ParseUint: {why}")


async def test_tokens_and_bindings_are_reviewed_with_their_options(api: Api, backend: Backend) -> None:
    rule = {**RULE, "operations": ["CREATE"], "resources": ["pods/binding", "serviceaccounts/token"]}
    await backend.configure("validating", {"rules": [rule]})
    base = f"/api/v1/namespaces/{await api.namespace()}"
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"audiences": ["a"]}}
    assert (await api.post(f"{base}/serviceaccounts/default/token", token)).status == 201
    binding = {"metadata": {"name": "p"}, "target": {"name": "n"}}
    assert (await api.post(f"{base}/pods/p/binding?dryRun=All", binding)).status == 404
    first, second = (review["request"] for review in backend.asked)
    assert first["kind"] == {"group": "authentication.k8s.io", "version": "v1", "kind": "TokenRequest"}
    assert (first["name"], first["object"]["spec"]["audiences"]) == ("default", ["a"])
    assert first["options"] == {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"}
    assert second["options"] == {**first["options"], "dryRun": ["All"]}


BIND = {"metadata": {"name": "p"}, "target": {"name": "n"}}


@pytest.mark.parametrize(
    ("path", "body", "named", "message"),
    [
        ("pods/p/binding", {**BIND, "metadata": {}}, {}, "name in URL does not match name in Binding object"),
        ("pods/p/eviction", {"metadata": {"name": "q"}}, {"name": "q"}, "name in URL does not match name in Eviction"),
        ("serviceaccounts/default/token", {"spec": {"expirationSeconds": 5}}, {}, "TokenRequest.authentication.k8s.io"),
    ],
)
async def test_what_is_not_stored_is_checked_between_mutation_and_validation(
    api: Api, backend: Backend, path: str, body: Tree, named: Tree, message: str
) -> None:
    rule = {**RULE, "resources": ["pods/binding", "pods/eviction", "serviceaccounts/token"]}
    await backend.configure("mutating", {"rules": [rule]})
    await backend.configure("validating", {"rules": [rule]})
    answer = await api.post(f"/api/v1/namespaces/{await api.namespace()}/{path}", body)
    assert answer.status in (400, 422) and answer.message.startswith(message)
    assert [one["request"]["object"]["metadata"].get("name") for one in backend.asked] == [named.get("name")]


async def test_the_old_way_of_binding_is_a_resource_of_its_own(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {"rules": [{**RULE, "resources": ["pods", "pods/*"]}]})
    await backend.configure("validating", {"rules": [{**RULE, "resources": ["bindings"]}]})
    assert (await api.post(f"/api/v1/namespaces/{await api.namespace()}/bindings", BIND)).status == 404
    (asked,) = (one["request"] for one in backend.asked)
    assert (asked["resource"]["resource"], asked["name"], "subResource" in asked) == ("bindings", "p", False)
    (manager,) = asked["object"]["metadata"]["managedFields"]
    assert manager["fieldsV1"] == {"f:target": {}}


async def test_a_token_request_is_complete_when_it_is_validated(api: Api, backend: Backend) -> None:
    rule = {**RULE, "resources": ["serviceaccounts/token"]}
    await backend.configure("mutating", {"rules": [rule]})
    await backend.configure("validating", {"rules": [rule]})
    path = f"/api/v1/namespaces/{await api.namespace()}/serviceaccounts/default"
    assert (await api.post(f"{path}/token", {})).status == 201
    first, second = (one["request"]["object"] for one in backend.asked)
    assert first["spec"]["audiences"] is None and "uid" not in first["metadata"]
    assert second["spec"]["audiences"] == ["https://kubernetes.default.svc"]
    assert second["metadata"]["uid"] == (await api.get(path)).doc["metadata"]["uid"]


async def test_warnings_are_passed_on(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: {"allowed": True, "warnings": ["take care"]}
    assert (await create(api)).warnings == ("take care",)


async def test_a_patch_changes_the_object_before_it_is_stored(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {})
    backend.reply = lambda request: patched(
        {"op": "add", "path": "/data", "value": {"k": "v"}},
        {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}},
        {"op": "add", "path": "/unknown", "value": 1},
    )
    made = await create(api)
    assert made.doc["data"] == {"k": "v"} and made.doc["metadata"]["labels"] == {"l": "1"}
    assert "unknown" not in made.doc
    stored = await api.get(f"/api/v1/namespaces/{made.doc['metadata']['namespace']}/configmaps/m")
    assert stored.doc == made.doc


async def test_a_patch_cannot_move_an_object_to_another_namespace(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {"objectSelector": {"matchLabels": {"moves": "yes"}}})
    backend.reply = lambda request: patched({"op": "add", "path": "/metadata/namespace", "value": "kube-system"})
    kept = await create(api, "kept")
    path = f"/api/v1/namespaces/{kept.doc['metadata']['namespace']}/configmaps"
    labels = {"labels": {"moves": "yes"}}
    made = await api.post(path, {"metadata": {"name": "m", **labels}})
    for answer in (made, await api.merge(f"{path}/kept", {"metadata": labels})):
        assert (answer.status, answer.message) == (
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        )


async def test_a_patch_may_empty_the_managed_fields(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {})
    backend.reply = lambda request: patched({"op": "add", "path": "/metadata/managedFields", "value": []})
    assert "managedFields" not in (await create(api)).doc["metadata"]


async def test_each_mutating_webhook_sees_earlier_changes(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {}, {})
    backend.reply = lambda request: (
        {"allowed": True}
        if "data" in request["object"]
        else patched({"op": "add", "path": "/data", "value": {"k": "v"}})
    )
    await create(api)
    assert [request["request"]["object"].get("data") for request in backend.asked] == [None, {"k": "v"}]


async def test_webhooks_are_reinvoked_if_needed(api: Api, backend: Backend) -> None:
    again = {"reinvocationPolicy": "IfNeeded"}
    await backend.configure("mutating", again, {}, again)
    order: list[str] = []

    def reply(request: Tree) -> Tree:
        data = request["object"].get("data") or {}
        order.append(",".join(sorted(data)))
        return (
            patched({"op": "add", "path": "/data", "value": {**data, str(len(data)): ""}})
            if len(data) < 2
            else {"allowed": True}
        )

    backend.reply = reply
    made = await create(api)
    assert order == ["", "0", "0,1", "0,1"], "the first once more; the last did not see another change"
    assert made.doc["data"] == {"0": "", "1": ""}


@pytest.mark.parametrize(
    ("reply", "why"),
    [
        pytest.param(
            {"raw": {"response": None}}, "received invalid webhook response: webhook response was absent", id="empty"
        ),
        pytest.param(
            {"allowed": True, "patchType": "JSONPatch", "patch": "e30="},
            "received undecodable patch in webhook response: json: cannot unmarshal object into Go value of type "
            "jsonpatch.Patch",
            id="an object instead of a list",
        ),
        pytest.param(
            {"allowed": True, "patchType": "JSONPatch", "patch": "WzFd"},
            "received undecodable patch in webhook response: json: cannot unmarshal number into Go value of type "
            "jsonpatch.Operation",
            id="a number instead of an operation",
        ),
        pytest.param(
            {"allowed": True, "patchType": "JSONPatch"},
            "received invalid webhook response: webhook returned response.patchType but not response.patch",
            id="type without patch",
        ),
        pytest.param(
            {"allowed": True, "patch": "W10="},
            "received invalid webhook response: webhook returned response.patch but not response.patchType",
            id="patch without type",
        ),
        pytest.param(
            {"allowed": True, "patch": "W10=", "patchType": ""},
            'received invalid webhook response: webhook returned invalid response.patchType of ""',
            id="empty type",
        ),
        *(
            pytest.param(
                {"allowed": True, "patch": patch, "patchType": "JSONPatch"},
                f"failed to call webhook: illegal base64 data at input byte {place}",
                id=f"no base64: {patch}",
            )
            for patch, place in (("é", 0), ("W1=", 3), ("[]", 0))
        ),
    ],
)
async def test_an_invalid_response_fails_the_write(api: Api, backend: Backend, reply: Tree, why: str) -> None:
    await backend.configure("mutating", {})
    backend.reply = lambda request: reply
    answer = await create(api)
    assert (answer.status, answer.doc["reason"]) == (500, "InternalError")
    assert answer.message == f'Internal error occurred: failed calling webhook "w0.example.com": {why}'


async def test_a_patch_must_leave_an_object(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {})
    backend.reply = lambda request: patched({"op": "replace", "path": "", "value": []})
    answer = await create(api)
    assert answer.status == 500
    assert answer.message.startswith(
        "Internal error occurred: couldn't get version/kind; json parse error: json: cannot unmarshal array into"
    )


@pytest.mark.parametrize(
    ("patch", "status"), [pytest.param("null", 201, id="null"), pytest.param("[null]", 500, id="null for an operation")]
)
async def test_a_patch_may_be_null(api: Api, backend: Backend, patch: str, status: int) -> None:
    await backend.configure("mutating", {})
    text = base64.b64encode(patch.encode()).decode()
    backend.reply = lambda request: {"allowed": True, "patch": text, "patchType": "JSONPatch"}
    answer = await create(api)
    assert answer.status == status
    if status == 500:
        assert answer.message == "Internal error occurred: Unexpected kind: unknown"


async def test_the_response_must_have_the_uid_of_the_request(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: {"allowed": True, "uid": "other"}
    uid = (answer := await create(api)) and backend.asked[0]["request"]["uid"]
    assert answer.message.endswith(f'received invalid webhook response: expected response.uid="{uid}", got "other"')


async def test_the_response_must_be_of_kind_review(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: {"raw": {"response": {"uid": request["uid"], "allowed": True}}}
    assert (await create(api)).message.endswith(
        "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="
    )


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(
            {"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview", "response": {}},
            "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion",
            id="another version",
        ),
        pytest.param(
            {"apiVersion": "v1", "kind": "Status"},
            'no kind "Status" is registered for version "v1" in scheme '
            '"k8s.io/apiserver/pkg/util/webhook/client.go:71"',
            id="another kind",
        ),
        pytest.param(
            b"all is well",
            "couldn't get version/kind; json parse error: json: cannot unmarshal string into Go value of type "
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }',
            id="a text",
        ),
    ],
)
async def test_a_response_that_is_not_a_review_fails_the_call(
    api: Api, backend: Backend, raw: bytes | Tree, why: str
) -> None:
    await backend.configure("validating", {})
    backend.reply = lambda request: raw if isinstance(raw, bytes) else {"raw": raw}
    assert (await create(api)).message.endswith(
        f'failed calling webhook "w0.example.com": failed to call webhook: {why}'
    )


async def test_the_older_review_is_less_strict(api: Api, backend: Backend) -> None:
    await backend.configure("mutating", {"admissionReviewVersions": ["v7", "v1beta1"]})
    operation = {"op": "add", "path": "/data", "value": {"k": "v"}}
    backend.reply = lambda request: {
        "raw": {"response": {"allowed": True, "patch": patched(operation)["patch"]}},
    }
    assert (await create(api)).doc["data"] == {"k": "v"}
    assert backend.asked[0]["apiVersion"] == "admission.k8s.io/v1beta1"


@pytest.mark.parametrize("policy", ["Fail", "Ignore"])
async def test_an_unreachable_webhook_fails_the_write_or_is_ignored(api: Api, backend: Backend, policy: str) -> None:
    url = "https://127.0.0.1:1/x"
    await backend.configure("validating", {"failurePolicy": policy, "clientConfig": {"url": url}, "timeoutSeconds": 3})
    answer = await create(api)
    if policy == "Ignore":
        assert answer.status == 201
    else:
        assert answer.message == (
            'Internal error occurred: failed calling webhook "w0.example.com": failed to call webhook: '
            f'Post "{url}?timeout=3s": dial tcp 127.0.0.1:1: connect: connection refused'
        )


async def test_a_write_is_given_up_when_the_time_of_its_request_is_over(api: Api, backend: Backend) -> None:
    over = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await over.wait()
        writer.close()

    async with await asyncio.start_server(silent, "127.0.0.1", 0) as server:
        url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        await backend.configure("validating", {"clientConfig": {"url": url}})
        answer = await api.call("POST", f"{CONFIG_MAPS}?timeout=50ms", {"metadata": {"name": "c"}})
        over.set()
    assert (answer.status, answer.doc["reason"]) == (504, "Timeout")
    assert (await api.call("GET", f"{CONFIG_MAPS}/c")).status == 404


async def test_a_webhook_without_a_trusted_certificate_is_not_called(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {"clientConfig": {"url": backend.config()["url"]}})
    answer = await create(api)
    assert answer.message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert not backend.asked


async def test_an_error_of_the_webhooks_server_is_reported(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {})
    backend.status = 500
    backend.reply = lambda request: b"{}"
    assert (await create(api)).message.endswith(
        'failed to call webhook: an error on the server ("unknown") has prevented the request from succeeding'
    )


async def test_a_service_is_reached_at_its_endpoints(api: Api, backend: Backend) -> None:
    service = {"namespace": "default", "name": "hook", "path": "/p", "port": 8443}
    config = {"service": service, "caBundle": backend.bundle}
    await backend.configure("validating", {"clientConfig": config})
    why = 'Post "https://hook.default.svc:8443/p?timeout=10s": '
    assert (await create(api)).message.endswith(why + 'service "hook" not found')
    spec = {"ports": [{"port": 8443, "targetPort": 1}]}
    await api.make("/api/v1/namespaces/default/services", {"metadata": {"name": "hook"}, "spec": spec})
    await api.make(
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        {
            "metadata": {"name": "hook-1", "labels": {"kubernetes.io/service-name": "hook"}},
            "addressType": "IPv4",
            "ports": [{"port": 1}],
            "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": False}}],
        },
    )
    await backend.configure("validating", {"clientConfig": {**config, "service": {**service, "port": 1}}}, name="b")
    assert (await create(api)).message.endswith('no service port 1 found for service "hook"')


async def test_dry_runs_need_webhooks_without_side_effects(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {"sideEffects": "NoneOnDryRun"})
    assert (await create(api, query="?dryRun=All")).status == 201
    assert backend.asked[0]["request"]["dryRun"] is True


async def test_selectors_and_conditions_choose(api: Api, backend: Backend) -> None:
    await backend.configure(
        "validating",
        {"objectSelector": {"matchLabels": {"judge": "me"}}},
        {"namespaceSelector": {"matchLabels": {"judge": "all"}}},
        {"matchConditions": [{"name": "c", "expression": "object.?data.?x.orValue('') == 'y'"}]},
    )
    backend.reply = lambda request: {"allowed": True}

    async def asked(namespace: str, doc: Tree) -> int:
        backend.asked.clear()
        assert (await api.post(f"/api/v1/namespaces/{namespace}/configmaps", doc)).status == 201
        return len(backend.asked)

    plain, marked = await api.namespace(account=False), await api.namespace(account=False, judge="all")
    assert await asked(plain, {"metadata": {"name": "a"}}) == 0
    assert await asked(plain, {"metadata": {"name": "b", "labels": {"judge": "me"}}}) == 1
    assert await asked(plain, {"metadata": {"name": "c"}, "data": {"x": "y"}}) == 1
    assert await asked(marked, {"metadata": {"name": "a"}}) == 1
    assert await asked(marked, {"metadata": {"name": "b", "labels": {"judge": "me"}}, "data": {"x": "y"}}) == 3


async def test_a_condition_that_fails_refuses(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {"matchConditions": [{"name": "c", "expression": "object.data.x == 'y'"}]})
    answer = await create(api)
    assert (answer.status, answer.doc["reason"]) == (403, "Forbidden")
    assert answer.message == (
        "configmaps \"m\" is forbidden: expression 'object.data.x == 'y'' resulted in error: no such key: data"
    )


async def test_conditions_of_webhooks_have_no_namespace(api: Api, backend: Backend) -> None:
    """Unlike those of policies."""
    await backend.configure("validating", {"matchConditions": [{"name": "c", "expression": "namespaceObject == null"}]})
    assert (await create(api)).status == 201 and len(backend.asked) == 1


async def test_a_bundle_without_certificates_is_of_no_use(api: Api, backend: Backend) -> None:
    """The placeholder of many manifests is one line end."""
    await backend.configure("validating", {"clientConfig": {**backend.config(), "caBundle": "Cg=="}})
    why = "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
    assert (await create(api)).message.endswith(f'failed calling webhook "w0.example.com": {why}')


async def test_deletions_are_shown_with_the_old_object_only(api: Api, backend: Backend) -> None:
    made = await create(api)
    await backend.configure("mutating", {})
    backend.reply = lambda request: patched({"op": "add", "path": "/data", "value": {}})
    path = f"/api/v1/namespaces/{made.doc['metadata']['namespace']}/configmaps/m"
    answer = await api.delete(path)
    request = backend.asked[0]["request"]
    assert (request["object"], request["oldObject"]["metadata"]["name"], request["operation"]) == (None, "m", "DELETE")
    assert answer.message == (
        'Internal error occurred: admission webhook "w0.example.com" attempted to modify the object, which is not '
        "supported for this operation"
    )


@pytest.mark.parametrize("given", [{}, {"resourceVersion": "RV"}, None])
async def test_the_preconditions_of_a_deletion_are_shown(api: Api, backend: Backend, given: Tree | None) -> None:
    made = (await create(api)).doc["metadata"]
    await backend.configure("validating", {})
    wanted = given and {"resourceVersion": made["resourceVersion"]}
    body = {} if given is None else {"preconditions": wanted}
    path = f"/api/v1/namespaces/{made['namespace']}/configmaps/m"
    assert (await api.call("DELETE", path, body)).status == 200
    (review,) = backend.asked
    assert review["request"]["options"].get("preconditions") == wanted


async def test_the_deletion_of_a_namespace_is_that_of_its_uid(api: Api, backend: Backend) -> None:
    await backend.configure("validating", {"rules": [{**RULE, "resources": ["namespaces"]}]})
    name = await api.namespace(account=False)
    uid = (await api.get(f"/api/v1/namespaces/{name}")).doc["metadata"]["uid"]
    backend.asked.clear()
    assert (await api.delete(f"/api/v1/namespaces/{name}")).status == 200
    assert backend.asked[0]["request"]["options"]["preconditions"] == {"uid": uid}


async def test_the_immediate_end_of_a_pod_is_reviewed_again_as_it_is_marked(api: Api, backend: Backend) -> None:
    namespace = await api.namespace()
    path = f"/api/v1/namespaces/{namespace}/pods"
    await api.make(path, {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}})
    await backend.configure("validating", {"rules": [{**RULE, "resources": ["pods"]}]})
    assert (await api.delete(f"{path}/p")).status == 200
    seen = [review["request"]["oldObject"]["metadata"] for review in backend.asked]
    assert [one.get("deletionGracePeriodSeconds") for one in seen] == [None, 0]


async def test_the_configurations_themselves_are_exempt(api: Api, backend: Backend) -> None:
    everything = {"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/*"]}
    await backend.configure("validating", {"rules": [everything]})
    backend.reply = lambda request: {"allowed": False}
    assert (await api.delete(f"{HOOKS}/validatingwebhookconfigurations/c")).status == 200
    assert (await create(api)).status == 201
