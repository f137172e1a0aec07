"""What the server sets itself: first statuses, generations, fields that updates cannot change, grace periods."""

import pytest

from kcm_cli.sandbox.apiserver.strategy import Context
from kcm_cli.sandbox.apiserver.types import User
from tests.kit.api import Api
from tests.unit.sandbox.apiserver.strategy import kit

_AMOUNT = {"cpu": "1", "memory": "1Gi"}
_REQUESTS = kit.info("certificates.k8s.io", "certificatesigningrequests", "X", namespaced=False)


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        pytest.param({}, "BestEffort", id="nothing"),
        pytest.param({"requests": {"cpu": "1"}}, "Burstable", id="requests"),
        pytest.param({"limits": _AMOUNT}, "Guaranteed", id="limits"),
        pytest.param({"limits": _AMOUNT, "requests": {"cpu": "500m"}}, "Burstable", id="less-than-limits"),
    ],
)
def test_a_new_pod_is_pending_and_has_a_class(resources, expected):
    doc = kit.pod(container={"resources": resources})
    doc["status"] = {"phase": "Running", "podIP": "1.2.3.4"}
    assert kit.created(kit.PODS, doc)["status"] == {"phase": "Pending", "qosClass": expected}


@pytest.mark.parametrize(
    ("change", "generation"),
    [
        pytest.param({"spec__replicas": 5}, 2, id="spec"),
        pytest.param({"metadata__annotations": {"a": "b"}}, 2, id="annotations"),
        pytest.param({"metadata__labels": {"a": "b"}}, 1, id="labels"),
        pytest.param({"status__replicas": 5}, 1, id="status"),
    ],
)
def test_generation_of_a_deployment(change, generation):
    old = kit.stored(kit.DEPLOYMENTS, kit.deployment())
    new = kit.changed(old, **change)
    kit.rules(kit.DEPLOYMENTS).prepare_update(new, old)
    assert new["metadata"]["generation"] == generation and new["status"] == old["status"]


def test_a_status_update_keeps_the_spec():
    old = kit.stored(kit.DEPLOYMENTS, kit.deployment())
    new = kit.changed(old, spec__replicas=9, status__replicas=3)
    kit.rules(kit.DEPLOYMENTS).prepare_status(new, old)
    assert new["spec"] == old["spec"] and new["status"]["replicas"] == 3
    assert new["metadata"]["generation"] == 1


def test_a_job_selects_its_own_pods():
    spec = kit.created(kit.JOBS, kit.job())["spec"]
    assert spec["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    names = {"batch.kubernetes.io/job-name": "x", "job-name": "x"}
    uids = {"batch.kubernetes.io/controller-uid": "u", "controller-uid": "u"}
    assert spec["template"]["metadata"]["labels"] == names | uids


def test_fields_behind_gates_are_dropped():
    lifecycle = {"stopSignal": "SIGTERM", "preStop": {"sleep": {"seconds": 1}}}
    made = kit.created(kit.PODS, kit.pod({"schedulingGroup": {}}, container={"lifecycle": lifecycle}))
    assert "schedulingGroup" not in made["spec"]
    assert made["spec"]["containers"][0]["lifecycle"] == {"preStop": {"sleep": {"seconds": 1}}}


def test_a_status_field_behind_a_gate_is_dropped_unless_it_is_there_already():
    field = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "c"}]}
    old, new = kit.pod(), {**kit.pod(), "status": dict(field)}
    kit.rules(kit.PODS).on_status(new, old)
    assert new["status"] == {}
    old["status"], new["status"] = field, dict(field)
    kit.rules(kit.PODS).on_status(new, old)
    assert new["status"] == field


def test_an_app_armor_annotation_becomes_a_field():
    key = "container.apparmor.security.beta.kubernetes.io/c"
    made = kit.created(kit.PODS, kit.pod(annotations={key: "localhost/p"}))
    profile = {"type": "Localhost", "localhostProfile": "p"}
    assert made["spec"]["containers"][0]["securityContext"]["appArmorProfile"] == profile


@pytest.mark.parametrize(
    ("spec", "phase", "requested", "expected"),
    [
        pytest.param({"nodeName": "n"}, "Running", None, 30, id="own"),
        pytest.param({"nodeName": "n"}, "Running", 5, 5, id="asked"),
        pytest.param({"nodeName": "n"}, "Succeeded", None, 0, id="ended"),
        pytest.param({}, "Pending", None, 0, id="nowhere"),
        pytest.param({"nodeName": "n"}, "Running", -1, 1, id="negative"),
    ],
)
def test_grace_period(spec, phase, requested, expected):
    doc = kit.created(kit.PODS, kit.pod(spec))
    doc["status"]["phase"] = phase
    wait = kit.rules(kit.PODS).grace_period
    assert wait is not None and wait(doc, requested) == expected


def test_who_asks_for_a_certificate_is_written_by_the_server():
    doc = {"metadata": {"name": "r"}, "spec": {"username": "liar", "groups": ["system:masters"]}}
    kit.rules(_REQUESTS).prepare_create(doc, Context("2026-01-01T00:00:00Z", User("ann", "1", ("staff",))))
    assert doc["spec"] == {"username": "ann", "uid": "1", "groups": ["staff"]}


@pytest.mark.parametrize(
    ("doc", "expected"),
    [
        pytest.param(kit.pod(), [], id="nothing"),
        pytest.param(
            kit.pod({"nodeSelector": {"beta.kubernetes.io/os": "linux"}}),
            ['spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead'],
            id="label",
        ),
        pytest.param(
            kit.pod(container={"resources": {"limits": {"memory": "100m"}, "requests": {"memory": "1"}}}),
            [
                'spec.containers[0].resources.limits[memory]: fractional byte value "100m" is invalid, '
                "must be an integer"
            ],
            id="fraction",
        ),
        pytest.param(
            kit.pod(container={"ports": [{"containerPort": 80}, {"containerPort": 80}]}),
            ["spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"],
            id="ports",
        ),
        pytest.param(
            kit.pod(container={"env": [{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]}),
            ['spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply'],
            id="variables",
        ),
        pytest.param(
            kit.pod(
                {
                    "volumes": [
                        {
                            "name": "v",
                            "configMap": {
                                "name": "m",
                                "items": [{"key": "a", "path": "d"}, {"key": "b", "path": "d/e"}],
                            },
                        }
                    ]
                }
            ),
            ['volume "v" (ConfigMap "m"): overlapping paths: "d/e" with "d"'],
            id="paths",
        ),
    ],
)
def test_warnings_of_pods(doc, expected):
    assert kit.rules(kit.PODS).warn(kit.created(kit.PODS, doc), None) == expected


@pytest.mark.parametrize("known", [None, 1, 3], ids=["unknown", "known", "known by the same value"])
def test_a_stateful_sets_max_unavailable_is_dropped_unless_the_older_object_has_it(known):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1, "maxUnavailable": 3}}
    base = kit.deployment(updateStrategy=strategy)
    made = kit.created(kit.STATEFUL_SETS, base)
    assert made["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1}
    old = kit.changed(made, spec__updateStrategy__rollingUpdate__maxUnavailable=known)
    new = kit.changed(made, spec__updateStrategy__rollingUpdate__maxUnavailable=3)
    kit.rules(kit.STATEFUL_SETS).prepare_update(new, old)
    kept = {} if known is None else {"maxUnavailable": 3}
    assert new["spec"]["updateStrategy"]["rollingUpdate"] == {"partition": 1, **kept}


def test_a_stateful_set_without_a_rolling_update_stays_as_it_is():
    made = kit.created(kit.STATEFUL_SETS, kit.deployment(updateStrategy={"type": "OnDelete"}))
    assert made["spec"]["updateStrategy"] == {"type": "OnDelete"}


async def test_warnings_of_a_changed_controller_are_about_its_new_template(api: Api) -> None:
    path = "/api/v1/namespaces/default/replicationcontrollers"
    spec = {"containers": [{"name": "c", "image": "i"}], "nodeSelector": {"beta.kubernetes.io/os": "linux"}}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    made = await api.post(path, {"metadata": {"name": "r"}, "spec": {"selector": {"a": "b"}, "template": template}})
    assert len(made.warnings) == 1
    doc = made.doc
    doc["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/os": "linux"}
    assert (await api.put(f"{path}/r", doc)).warnings == ()


async def test_errors_that_each_print_a_long_list_are_one(api: Api) -> None:
    scopes = [f"scope{number}" for number in range(5000)]
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": scopes}}
    answer = await api.post("/api/v1/namespaces/default/resourcequotas", quota)
    assert answer.status == 422 and len(answer.body) < 10_000
    assert [cause["field"] for cause in answer.causes] == ["spec.scopes"]
    few = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "1"}, "scopes": scopes[:50]}}
    assert len((await api.post("/api/v1/namespaces/default/resourcequotas", few)).causes) == 50
