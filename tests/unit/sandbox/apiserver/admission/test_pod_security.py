"""PodSecurity: levels of namespaces, texts of violations, warnings, versions."""

from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.admission.pod_security.evaluator import evaluate
from kcm_cli.sandbox.apiserver.admission.pod_security.levels import LevelVersion
from tests.kit.api import Api, pod

Tree = dict[str, Any]
GOOD = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def with_context(**context: Any) -> Tree:
    made = pod()
    made["spec"]["containers"][0]["securityContext"] = context
    return made


@pytest.mark.parametrize(
    ("made", "problems"),
    [
        pytest.param(pod(), [], id="plain"),
        pytest.param(
            with_context(privileged=True),
            ['privileged (container "c" must not set securityContext.privileged=true)'],
            id="privileged",
        ),
        pytest.param(
            pod(hostNetwork=True, hostPID=True), ["host namespaces (hostNetwork=true, hostPID=true)"], id="host"
        ),
        pytest.param(
            pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}, {"name": "b", "hostPath": {"path": "/"}}]),
            ['hostPath volumes (volumes "a", "b")'],
            id="host paths",
        ),
        pytest.param(
            with_context(capabilities={"add": ["NET_ADMIN", "CHOWN"]}),
            [
                'non-default capabilities (container "c" must not include "NET_ADMIN" in '
                "securityContext.capabilities.add)"
            ],
            id="capabilities",
        ),
        pytest.param(
            pod(securityContext={"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}),
            ["forbidden sysctls (kernel.msgmax)"],
            id="sysctls",
        ),
        pytest.param(
            pod(securityContext={"seccompProfile": {"type": "Unconfined"}}),
            ['seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")'],
            id="seccomp",
        ),
        pytest.param(
            pod(securityContext={"seLinuxOptions": {"type": "spc_t", "user": "u"}}),
            ['seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type "spc_t"; user may not be set)'],
            id="selinux",
        ),
    ],
)
def test_baseline(made: Tree, problems: list[str]) -> None:
    assert [str(each) for each in evaluate(LevelVersion("baseline", 36), made["metadata"], made["spec"])] == problems


@pytest.mark.parametrize(
    ("context", "problems"),
    [
        pytest.param(GOOD, [], id="good"),
        pytest.param(
            {},
            [
                'allowPrivilegeEscalation != false (container "c" must set '
                "securityContext.allowPrivilegeEscalation=false)",
                'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"])',
                'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
                'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to '
                '"RuntimeDefault" or "Localhost")',
            ],
            id="nothing set",
        ),
        pytest.param({**GOOD, "runAsUser": 0}, ['runAsUser=0 (container "c" must not set runAsUser=0)'], id="root"),
    ],
)
def test_restricted(context: Tree, problems: list[str]) -> None:
    made = with_context(**context)
    assert [str(each) for each in evaluate(LevelVersion("restricted", 36), made["metadata"], made["spec"])] == problems


def test_rules_depend_on_the_version() -> None:
    made = pod(securityContext={"sysctls": [{"name": "net.ipv4.tcp_keepalive_time", "value": "1"}]})
    found = [bool(evaluate(LevelVersion("baseline", minor), made["metadata"], made["spec"])) for minor in (28, 29)]
    assert found == [True, False]


async def test_a_namespace_enforces(api: Api) -> None:
    namespace = await api.namespace()
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    assert (await api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})).status == 200
    answer = await api.post(f"/api/v1/namespaces/{namespace}/pods", pod(hostNetwork=True))
    assert (answer.status, answer.message) == (
        403,
        'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)',
    )
    assert (await api.post(f"/api/v1/namespaces/{namespace}/pods", pod())).status == 201


async def test_templates_are_accepted_with_warnings(api: Api) -> None:
    namespace = await api.namespace()
    labels = {"pod-security.kubernetes.io/enforce": "baseline", "pod-security.kubernetes.io/warn": "baseline"}
    await api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod(hostPID=True)["spec"]}
    answer = await api.post(
        f"/apis/apps/v1/namespaces/{namespace}/deployments",
        {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}},
    )
    assert answer.status == 201
    assert answer.warnings == ('would violate PodSecurity "baseline:latest": host namespaces (hostPID=true)',)


async def test_a_stricter_namespace_warns_about_its_pods(api: Api) -> None:
    namespace = await api.namespace()
    for name in ("b", "a"):
        await api.make(f"/api/v1/namespaces/{namespace}/pods", pod(name, hostNetwork=True))
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    answer = await api.merge(f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": labels}})
    assert answer.status == 200
    assert answer.warnings == (
        f'existing pods in namespace "{namespace}" violate the new PodSecurity enforce level "baseline:latest"',
        "a (and 1 other pod): host namespaces",
    )


@pytest.mark.parametrize(
    ("labels", "problems"),
    [
        pytest.param(
            {"pod-security.kubernetes.io/enforce": "strict"},
            'metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: "strict": must be one of privileged, '
            "baseline, restricted",
            id="level",
        ),
        pytest.param(
            {"pod-security.kubernetes.io/warn-version": "1.x"},
            "metadata.labels[pod-security.kubernetes.io/warn-version]: "
            'Invalid value: "1.x": must be "latest" or "v1.x"',
            id="version",
        ),
    ],
)
async def test_invalid_labels_are_refused(api: Api, labels: Tree, problems: str) -> None:
    answer = await api.post("/api/v1/namespaces", {"metadata": {"name": "odd", "labels": labels}})
    assert (answer.status, answer.message) == (422, f'Namespace "odd" is invalid: {problems}')
