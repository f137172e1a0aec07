"""What writes are refused for, in the words of a v1.36 server."""

from typing import Any

import msgspec
import pytest

NS = "/api/v1/namespaces/default"
APPS = "/apis/apps/v1/namespaces/default"
LABELS = {"matchLabels": {"a": "b"}}
TEMPLATE: Any = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def refusal(served: Any, path: str, body: dict[str, Any], **options: Any) -> Any:
    """The Status of a POST that is refused."""

    async def test(api: Any) -> Any:
        answer = await api.call("POST", path, {"metadata": {"name": "x"}, **body}, **options)
        assert answer.status >= 400, answer.body.decode()
        return msgspec.json.decode(answer.body)

    return served(test)


def accepted(served: Any, path: str, body: dict[str, Any], **options: Any) -> Any:
    async def test(api: Any) -> Any:
        return await api.json("POST", path, {"metadata": {"name": "x"}, **body}, status=201, **options)

    return served(test)


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
def test_a_wrong_type_is_named_as_in_the_original(served: Any, path: str, body: Any, kind: str, place: str) -> None:
    status = refusal(served, path, body)
    assert status["message"].endswith(f"json: cannot unmarshal {kind} into Go struct field {place}")


@pytest.mark.parametrize(
    ("path", "body", "causes"),
    [
        pytest.param(
            "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
            {
                "spec": {
                    "maxReplicas": 3,
                    "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "K", "name": "n"},
                    "behavior": {"scaleUp": {"policies": []}},
                }
            },
            ["spec.behavior.scaleUp.policies: Required value: must specify at least one Policy"],
            id="no scaling policies",
        ),
        pytest.param(
            f"{NS}/replicationcontrollers",
            {"spec": {"selector": {"a": "b"}, "template": {"spec": TEMPLATE["spec"]}}},
            ["spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`"],
            id="template without labels",
        ),
        pytest.param(
            "/api/v1/persistentvolumes",
            {"spec": {"accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/a"}}},
            [
                "spec.capacity: Required value",
                'spec.capacity: Unsupported value: null: supported values: "storage"',
            ],
            id="volume without capacity",
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
            f"{NS}/services",
            {"spec": {"type": "ExternalName", "externalName": "a.b", "internalTrafficPolicy": "x"}},
            ['spec.internalTrafficPolicy: Unsupported value: "x": supported values: "Cluster", "Local"'],
            id="internal policy of an external name",
        ),
        pytest.param(
            f"{NS}/pods",
            pod(securityContext={"seLinuxChangePolicy": "MountOption"}),
            [
                'spec.securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": '
                'supported values: "Recursive"'
            ],
            id="mounting with a label",
        ),
        pytest.param(
            f"{NS}/pods",
            pod(
                volumes=[
                    {
                        "name": "v",
                        "ephemeral": {
                            "volumeClaimTemplate": {
                                "metadata": {"uid": "u"},
                                "spec": {
                                    "accessModes": ["ReadWriteOnce"],
                                    "resources": {"requests": {"storage": "1"}},
                                },
                            }
                        },
                    }
                ]
            ),
            ["spec.volumes[0].ephemeral.volumeClaimTemplate.metadata.uID: Forbidden: cannot be set"],
            id="uid of a claim to be made",
        ),
    ],
)
def test_causes(served: Any, path: str, body: Any, causes: list[str]) -> None:
    status = refusal(served, path, body)
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
def test_a_runtime_class_that_is_not_there(served: Any, name: str, code: int, message: str) -> None:
    status = refusal(served, f"{NS}/pods", pod(runtimeClassName=name))
    assert (status["code"], status["message"]) == (code, message)


def test_an_account_that_nobody_can_ask_for(served: Any) -> None:
    status = refusal(served, f"{NS}/pods", pod(serviceAccountName="a/b"))
    why = "error looking up service account default/a/b: invalid resource name \"a/b\": [may not contain '/']"
    assert status["message"] == f'pods "x" is forbidden: {why}'


def test_the_surge_of_a_stateful_set_is_off(served: Any) -> None:
    rolling = {"partition": 1, "maxUnavailable": 2}
    spec = {"selector": LABELS, "template": TEMPLATE, "updateStrategy": {"rollingUpdate": rolling}}
    made = accepted(served, f"{APPS}/statefulsets", {"spec": spec})
    assert made["spec"]["updateStrategy"] == {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}


def test_a_lifecycle_of_nothing_but_a_gated_signal_goes(served: Any) -> None:
    container = {"name": "c", "image": "i", "lifecycle": {"stopSignal": "SIGTERM"}}
    made = accepted(served, f"{NS}/pods", {"spec": {"os": {"name": "linux"}, "containers": [container]}})
    assert "lifecycle" not in made["spec"]["containers"][0]


def test_a_dry_run_does_not_look_at_the_version(served: Any) -> None:
    body = {"metadata": {"name": "x", "resourceVersion": "7"}}
    assert accepted(served, f"{NS}/configmaps", body, query={"dryRun": "All"})["metadata"]["name"] == "x"
    assert refusal(served, f"{NS}/configmaps", body)["code"] == 500


def test_finalizers_of_updates_are_checked_as_core_knows_them(served: Any) -> None:
    async def test(api: Any) -> Any:
        await api.config_map("x")
        body = {"metadata": {"name": "x", "finalizers": ["y"]}}
        answer = await api.call("PUT", f"{NS}/configmaps/x", body)
        return msgspec.json.decode(answer.body)["details"]["causes"]

    assert [cause["field"] for cause in served(test)] == ["metadata.finalizers[0]"] * 2


def test_a_node_port_that_is_twice_in_an_update(served: Any) -> None:
    async def test(api: Any) -> Any:
        await api.json(
            "POST", f"{NS}/services", {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}}, status=201
        )
        ports = [{"name": "a", "port": 80, "nodePort": 30001}, {"name": "b", "port": 81, "nodePort": 30001}]
        body = {"metadata": {"name": "s"}, "spec": {"type": "NodePort", "ports": ports}}
        return msgspec.json.decode((await api.call("PUT", f"{NS}/services/s", body)).body)

    assert served(test)["message"] == "duplicate nodePort: {TCP 30001}"


def test_endpoints_keep_the_node_of_their_old_topology(served: Any) -> None:
    path = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices"
    topology = {"kubernetes.io/hostname": "n", "x": "y"}

    async def test(api: Any) -> Any:
        endpoint = {"addresses": ["10.0.0.1"]}
        body = {"metadata": {"name": "e"}, "addressType": "IPv4", "endpoints": [endpoint], "ports": []}
        await api.json("POST", path, body, status=201)
        body["endpoints"] = [{**endpoint, "deprecatedTopology": topology}]
        return (await api.json("PUT", f"{path}/e", body))["endpoints"]

    assert served(test) == [{"addresses": ["10.0.0.1"], "conditions": {}}]
