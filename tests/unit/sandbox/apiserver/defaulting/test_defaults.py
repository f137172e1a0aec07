"""Defaulting: values, explicit values are kept, and idempotence."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kcm_cli.sandbox.apiserver.kinds import KINDS
from tests.unit.sandbox.apiserver.strategy import kit

_HTTP = {"httpGet": {"port": 80}}
_NO_REQUEST = {"limits": {"cpu": "1"}}


def _defaulted(resource, doc):
    doc = copy.deepcopy(doc)
    KINDS.of(resource).defaults(doc)
    return doc


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        pytest.param("nginx", "Always", id="no-tag"),
        pytest.param("nginx:latest", "Always", id="latest"),
        pytest.param("nginx:1", "IfNotPresent", id="tag"),
        pytest.param("host:5000/nginx", "Always", id="port-is-no-tag"),
        pytest.param(f"nginx@sha256:{'a' * 64}", "IfNotPresent", id="digest"),
    ],
)
def test_pull_policy_follows_the_tag(image, policy):
    doc = _defaulted(kit.PODS, kit.pod(container={"image": image}))
    assert doc["spec"]["containers"][0]["imagePullPolicy"] == policy


def test_requests_of_a_pod_come_from_limits_but_not_in_a_template():
    single = _defaulted(kit.PODS, kit.pod(container={"resources": _NO_REQUEST}))
    assert single["spec"]["containers"][0]["resources"]["requests"] == {"cpu": "1"}
    doc = kit.deployment()
    doc["spec"]["template"]["spec"]["containers"][0]["resources"] = copy.deepcopy(_NO_REQUEST)
    many = _defaulted(kit.DEPLOYMENTS, doc)
    assert "requests" not in many["spec"]["template"]["spec"]["containers"][0]["resources"]


def test_probes_even_empty_ones_get_numbers_and_a_path():
    doc = _defaulted(kit.PODS, kit.pod(container={"livenessProbe": {}, "readinessProbe": copy.deepcopy(_HTTP)}))
    container = doc["spec"]["containers"][0]
    numbers = {"timeoutSeconds": 1, "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}
    assert container["livenessProbe"] == numbers
    assert container["readinessProbe"] == numbers | {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}}


def test_a_deployment_rolls_over_a_quarter_at_a_time():
    spec = _defaulted(kit.DEPLOYMENTS, kit.deployment())["spec"]
    assert spec["replicas"] == 1 and spec["revisionHistoryLimit"] == 10 and spec["progressDeadlineSeconds"] == 600
    rolling = {"maxUnavailable": "25%", "maxSurge": "25%"}
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": rolling}


@pytest.mark.parametrize(
    ("given_spec", "expected"),
    [
        pytest.param({}, (1, 1), id="one-pod"),
        pytest.param({"parallelism": 3}, (None, 3), id="work-queue"),
        pytest.param({"completions": 4}, (4, 1), id="fixed-count"),
    ],
)
def test_completions_and_parallelism(given_spec, expected):
    spec = _defaulted(kit.JOBS, kit.job(**given_spec))["spec"]
    assert (spec.get("completions"), spec.get("parallelism")) == expected


_RESOURCES = [
    pytest.param(kit.PODS, kit.pod(), id="pod"),
    pytest.param(kit.DEPLOYMENTS, kit.deployment(), id="deployment"),
    pytest.param(kit.JOBS, kit.job(), id="job"),
    pytest.param(kit.CLAIMS, kit.claim(), id="claim"),
]


@pytest.mark.parametrize(("resource", "doc"), _RESOURCES)
def test_defaulting_is_idempotent(resource, doc):
    first = _defaulted(resource, doc)
    assert _defaulted(resource, first) == first


@given(
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    dns=st.sampled_from(["Default", "ClusterFirst", "None"]),
    seconds=st.integers(0, 1000),
    links=st.booleans(),
)
def test_explicit_values_are_kept(policy, dns, seconds, links):
    spec = {
        "restartPolicy": policy,
        "dnsPolicy": dns,
        "terminationGracePeriodSeconds": seconds,
        "enableServiceLinks": links,
    }
    doc = _defaulted(kit.PODS, kit.pod(spec))
    assert {key: doc["spec"][key] for key in spec} == spec
