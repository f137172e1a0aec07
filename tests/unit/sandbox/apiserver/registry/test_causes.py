"""The causes of refused writes, with the texts of a v1.36 server."""

from typing import Any

import msgspec
import pytest

from tests.kit.api import Api

NS = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
LABELS = {"matchLabels": {"a": "b"}}
TEMPLATE: Any = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


async def refusal(api: Api, path: str, body: dict[str, Any], **options: Any) -> Any:
    """The Status of a refused POST."""
    answer = await api.call("POST", path, {"metadata": {"name": "x"}, **body}, **options)
    assert answer.status >= 400, answer.body.decode()
    return msgspec.json.decode(answer.body)


async def accepted(api: Api, path: str, body: dict[str, Any], **options: Any) -> Any:
    return await api.json("POST", path, {"metadata": {"name": "x"}, **body}, status=201, **options)


def pod(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "c", "image": "i"}], **spec}}


@pytest.mark.parametrize(
    ("path", "body", "kind", "place"),
    [
        (f"{NS}/pods", pod(restartPolicy=5), "number", "PodSpec.spec.restartPolicy of type v1.RestartPolicy"),
        (
            f"{NS}/services",
            {"spec": {"ipFamilies": "x"}},
            "string",
            "ServiceSpec.spec.ipFamilies of type []v1.IPFamily",
        ),
        (f"{NS}/services", {"spec": {"ipFamilies": [1]}}, "number", "ServiceSpec.spec.ipFamilies of type v1.IPFamily"),
        (
            f"{NS}/pods",
            pod(volumes=[{"name": "v", "hostPath": {"path": 1}}]),
            "number",
            "HostPathVolumeSource.spec.volumes.VolumeSource.hostPath.path of type string",
        ),
        (f"{NS}/pods", pod(overhead=[]), "array", "PodSpec.spec.overhead of type v1.ResourceList"),
        (
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            {"spec": {"matchConstraints": {"resourceRules": [{"apiGroups": [1]}]}}},
            "number",
            "NamedRuleWithOperations.spec.matchConstraints.resourceRules"
            ".RuleWithOperations.Rule.apiGroups of type string",
        ),
    ],
    ids=lambda value: value[-40:] if isinstance(value, str) else None,
)
async def test_a_wrong_type_is_named_as_upstream(api: Api, path: str, body: Any, kind: str, place: str) -> None:
    status = await refusal(api, path, body)
    assert status["message"].endswith(f"json: cannot unmarshal {kind} into Go struct field {place}")


@pytest.mark.parametrize(
    ("path", "body", "causes"),
    [
        pytest.param(
            f"{NS}/replicationcontrollers",
            {"spec": {"selector": {"a": "b"}, "template": {"spec": TEMPLATE["spec"]}}},
            ["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"],
            id="template without labels",
        ),
        pytest.param(
            "/api/v1/nodes",
            {"metadata": {"name": "n", "annotations": {"scheduler.alpha.kubernetes.io/preferAvoidPods": "x"}}},
            [
                'metadata.annotations.AvoidPods: Invalid value: "scheduler.alpha.kubernetes.io/preferAvoidPods": '
                "invalid character 'x' looking for beginning of value"
            ],
            id="avoided pods are no json",
        ),
        pytest.param(
            "/api/v1/nodes",
            {
                "metadata": {
                    "name": "n",
                    "annotations": {"scheduler.alpha.kubernetes.io/preferAvoidPods": '{"preferAvoidPods":[{}]}'},
                }
            },
            [
                "metadata.annotations.scheduler.alpha.kubernetes.io/preferAvoidPods[0].PodSignature: Required value",
            ],
            id="avoided pods without a signature",
        ),
        pytest.param(
            f"{APPS}/statefulsets",
            {
                "spec": {
                    "selector": LABELS,
                    "template": {**TEMPLATE, "metadata": {"labels": {"a": "b", "/x": "y"}}},
                }
            },
            ['spec.template.labels: Invalid value: "/x": prefix part must be non-empty'] * 2,
            id="labels of a stateful set's pods, twice",
        ),
    ],
)
async def test_causes(api: Api, path: str, body: Any, causes: list[str]) -> None:
    status = await refusal(api, path, body)
    assert status["code"] == 422
    assert [f"{cause['field']}: {cause['message']}" for cause in status["details"]["causes"]] == causes


@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("", 500, "resource name may not be empty"),
        ("a/b", 500, "invalid resource name \"a/b\": [may not contain '/']"),
        ("a", 403, 'pods "x" is forbidden: pod rejected: RuntimeClass "a" not found'),
    ],
)
async def test_a_missing_runtime_class(api: Api, name: str, code: int, message: str) -> None:
    status = await refusal(api, f"{NS}/pods", pod(runtimeClassName=name))
    assert (status["code"], status["message"]) == (code, message)


async def test_an_invalid_name_of_a_service_account(api: Api) -> None:
    status = await refusal(api, f"{NS}/pods", pod(serviceAccountName="a/b"))
    why = "error looking up service account default/a/b: invalid resource name \"a/b\": [may not contain '/']"
    assert status["message"] == f'pods "x" is forbidden: {why}'


async def test_the_surge_of_a_stateful_set_is_off(api: Api) -> None:
    rolling = {"partition": 1, "maxUnavailable": 2}
    spec = {"selector": LABELS, "template": TEMPLATE, "updateStrategy": {"rollingUpdate": rolling}}
    made = await accepted(api, f"{APPS}/statefulsets", {"spec": spec})
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}


async def test_a_lifecycle_with_only_a_gated_signal_is_dropped(api: Api) -> None:
    container = {"name": "c", "image": "i", "lifecycle": {"stopSignal": "SIGTERM"}}
    made = await accepted(api, f"{NS}/pods", {"spec": {"os": {"name": "linux"}, "containers": [container]}})
    assert "lifecycle" not in made["spec"]["containers"][0]


async def test_a_dry_run_ignores_the_version(api: Api) -> None:
    body = {"metadata": {"name": "x", "resourceVersion": "7"}}
    assert (await accepted(api, f"{NS}/configmaps", body, query={"dryRun": "All"}))["metadata"]["name"] == "x"
    assert (await refusal(api, f"{NS}/configmaps", body))["code"] == 500


async def test_finalizers_of_updates_must_be_standard_in_core(api: Api) -> None:
    await api.config_map("x")
    body = {"metadata": {"name": "x", "finalizers": ["y"]}}
    answer = await api.call("PUT", f"{NS}/configmaps/x", body)
    found = msgspec.json.decode(answer.body)["details"]["causes"]
    assert [cause["field"] for cause in found] == ["metadata.finalizers[0]"] * 2


async def test_a_node_port_that_is_twice_in_an_update(api: Api) -> None:
    await api.json("POST", f"{NS}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, status=201)
    ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]
    body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
    found = msgspec.json.decode((await api.call("PUT", f"{NS}/services/s", body)).body)
    assert found["message"] == "duplicate nodePort: {TCP 30001}"


async def test_endpoints_keep_the_node_of_their_old_topology(api: Api) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    topology = {"kubernetes.io/hostname": "n", "x": "y"}
    endpoint = {"addresses": ["10.0.0.1"]}
    body = {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": []}
    await api.json("POST", path, body, status=201)
    body["endpoints"] = [{**endpoint, "deprecatedTopology": topology}]
    assert (await api.json("PUT", f"{path}/e", body))["endpoints"] == [{"addresses": ["10.0.0.1"], "conditions": {}}]


CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def claim(expression: str) -> dict[str, Any]:
    exactly = {"deviceClassName": "c", "selectors": [{"cel": {"expression": expression}}]}
    return {"spec": {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}}


_RULES = [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}]
_POLICY: dict[str, Any] = {"metadata": {"name": "p"}, "spec": {"matchConstraints": {"resourceRules": _RULES}}}


def policy(**more: Any) -> dict[str, Any]:
    return {**_POLICY, "spec": {**_POLICY["spec"], **more}}


async def test_a_policy_with_a_conversion_that_always_fails(api: Api) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    [cause] = (await refusal(api, path, policy(validations=[{"expression": "int('x') == 1"}])))["details"]["causes"]
    problem = "Internal error: program instantiation failed: type conversion error from 'string' to 'int'"
    assert (cause["reason"], cause["message"]) == ("InternalError", problem)


async def test_a_variable_with_a_conversion_that_always_fails_may_be_anything(api: Api) -> None:
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
    body = policy(
        variables=[{"name": "x", "expression": "int('x')"}],
        validations=[{"expression": "true", "messageExpression": "variables.x"}],
    )
    messages = [cause["message"] for cause in (await refusal(api, path, body))["details"]["causes"]]
    assert 'Invalid value: "variables.x": must evaluate to string but got dyn' in messages


async def test_a_mutation_that_names_a_variable_where_there_are_none(api: Api) -> None:
    patch = {"patchType": "ApplyConfiguration", "applyConfiguration": {"expression": "variables.x"}}
    path = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
    body = policy(mutations=[patch], reinvocationPolicy="Never")
    [cause] = (await refusal(api, path, body))["details"]["causes"]
    assert "undefined field 'x'" in cause["message"]


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("1", "must evaluate to bool or the unknown type, not int"),
        ("x", "compilation failed: ERROR: <input>:1:1: undeclared reference to 'x' (in container '')\n | x\n | ^"),
        ("device.y", "compilation failed: ERROR: <input>:1:7: undefined field 'y'\n | device.y\n | ......^"),
    ],
)
async def test_expressions_on_devices(api: Api, expression: str, why: str) -> None:
    [cause] = (await refusal(api, CLAIMS, claim(expression)))["details"]["causes"]
    assert cause["message"] == f'Invalid value: "{expression}": {why}'


@pytest.mark.parametrize(
    "expression",
    [
        'device.driver == "d"',
        'device.attributes["d"].a',
        'device.capacity["d"].memory.isGreaterThan(quantity("1Gi"))',
        'cel.bind(a, device.attributes["d"], a.b)',
    ],
)
async def test_expressions_that_choose_devices(api: Api, expression: str) -> None:
    assert (await accepted(api, CLAIMS, claim(expression)))["kind"] == "ResourceClaim"


async def test_a_claim_is_shown_as_its_internal_type(api: Api) -> None:
    exactly = '{"DeviceClassName":"c","Selectors":null,"AllocationMode":"ExactCount","Count":1,"AdminAccess":null,'
    shown = f'{{"Name":"r","Exactly":{exactly}"Tolerations":null,"Capacity":null}},"FirstAvailable":null}}'
    devices = f'{{"Devices":{{"Requests":[{shown}],"Constraints":null,"Config":null}}}}'
    await api.json("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {}}}, status=201)
    wanted = {"name": "r", "exactly": {"deviceClassName": "c"}}
    body = {"metadata": {"name": "c"}, "spec": {"devices": {"requests": [wanted]}}}
    found = msgspec.json.decode((await api.call("PUT", f"{CLAIMS}/c", body)).body)
    assert found["details"]["causes"][0]["message"] == f"Invalid value: {devices}: field is immutable"


async def test_only_allocated_devices_are_reported(api: Api) -> None:
    shown = '{"Driver":"d.x","Pool":"p","Device":"v","ShareID":""}'
    await api.json("POST", CLAIMS, {"metadata": {"name": "c"}, "spec": {"devices": {}}}, status=201)
    used = {"driver": "d.x", "pool": "p", "device": "v", "networkData": {"ips": ["10.0.0.1"]}}
    body = {"metadata": {"name": "c"}, "spec": {"devices": {}}, "status": {"devices": [used]}}
    found = msgspec.json.decode((await api.call("PUT", f"{CLAIMS}/c/status", body)).body)
    assert [cause["message"] for cause in found["details"]["causes"]] == [
        f"Invalid value: {shown}: must be an allocated device in the claim",
        'Invalid value: "10.0.0.1": must be a valid address in CIDR form, (e.g. 10.9.8.7/24 or 2001:db8::1/64)',
    ]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/apis/coordination.k8s.io/v1/namespaces/default/leases", {"spec": {}}),
        ("/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ],
)
async def test_kinds_that_take_any_finalizer(api: Api, path: str, body: Any) -> None:
    made = await accepted(api, path, {**body, "metadata": {"name": "x", "finalizers": ["y"]}})
    assert made["metadata"]["finalizers"] == ["y"]


async def test_a_self_link_is_not_kept(api: Api) -> None:
    await api.config_map("x")
    body = {"metadata": {"name": "x", "selfLink": "/x"}, "data": {"a": "b"}}
    assert "selfLink" not in (await api.json("PUT", f"{NS}/configmaps/x", body))["metadata"]


@pytest.mark.parametrize("sent", ["application/json", "application/apply-patch+yaml"])
async def test_a_self_link_of_what_a_write_creates_is_not_kept(api: Api, sent: str) -> None:
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/x"
    body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "x", "selfLink": "/x"}}
    method, query = ("PUT", {}) if sent == "application/json" else ("PATCH", {"fieldManager": "m"})
    made = await api.json(method, path, body, status=201, query=query, content_type=sent)
    assert "selfLink" not in made["metadata"]


async def test_a_dry_run_shows_the_self_link_that_is_not_kept(api: Api) -> None:
    await api.config_map("x")
    path, dry = f"{NS}/configmaps/x", {"dryRun": "All"}
    body = {"metadata": {"name": "x", "selfLink": "/x"}}
    assert (await api.json("PUT", path, body, query=dry))["metadata"]["selfLink"] == "/x"
    assert (await api.merge(path, body, query=dry)).doc["metadata"]["selfLink"] == "/x"
    kept = (await api.merge(path, body)).doc
    assert "selfLink" not in kept["metadata"]
    assert (await api.get(path)).doc == kept


async def test_an_empty_scope_is_none(api: Api) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": ""}
    hook = {"name": "a.b.c", "clientConfig": {"url": "https://a.b"}, "sideEffects": "None", "rules": [rule]}
    body = {"webhooks": [{**hook, "admissionReviewVersions": ["v1"]}]}
    path = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    [cause] = (await refusal(api, path, body))["details"]["causes"]
    assert cause["message"] == 'Unsupported value: "": supported values: "*", "Cluster", "Namespaced"'


async def test_extra_of_a_review_without_values(api: Api) -> None:
    spec = {"user": "u", "extra": {"k": None}, "nonResourceAttributes": {"path": "/x", "verb": "get"}}
    made = await accepted(api, "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"metadata": {}, "spec": spec})
    assert made["status"]["allowed"] is False


async def test_a_certificate_request_without_a_request(api: Api) -> None:
    path = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
    causes = (await refusal(api, path, {"spec": {"signerName": "a.b/c", "usages": ["client auth"]}}))["details"][
        "causes"
    ]
    said = [cause["message"] for cause in causes]
    assert said == ["Invalid value: null: PEM block type must be CERTIFICATE REQUEST"]


async def test_a_gated_field_of_a_driver_is_dropped(api: Api) -> None:
    path = "/apis/storage.k8s.io/v1/csidrivers"
    spec = {"preventPodSchedulingIfMissing": True}
    await api.json("POST", path, {"metadata": {"name": "d"}, "spec": spec}, status=201)
    made = await api.json("PUT", f"{path}/d", {**(await api.json("GET", f"{path}/d")), "spec": spec})
    assert "preventPodSchedulingIfMissing" not in made["spec"]


@pytest.mark.parametrize(("name", "quoted"), [('a"b', r'"a\"b"'), ("a\\b", r'"a\\b"'), ("a\nb", r'"a\nb"')])
async def test_wrong_names_are_quoted_as_by_go(api: Api, name: str, quoted: str) -> None:
    status = await refusal(api, f"{NS}/configmaps", {"metadata": {"name": name}})
    assert status["message"].startswith(f"ConfigMap {quoted} is invalid: metadata.name: Invalid value: {quoted}: ")
    assert status["details"]["name"] == name
