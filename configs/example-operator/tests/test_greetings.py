"""The operator, as its ServiceAccount with its own rights, on a cluster whose controllers are real."""

from pathlib import Path

import kopf
import pytest
from kcm_cli.testing import Fault, ManifestError, Sandbox

import greeting_operator  # registers the handlers

ACCOUNT = "system:serviceaccount:default:greeting-operator"
GROUPS = ("system:serviceaccounts", "system:authenticated")


async def main(kubeconfig: str) -> None:
    await kopf.operator(clusterwide=True, standalone=True)


@pytest.fixture
def running(kcm_sandbox: Sandbox):
    with kcm_sandbox.operator(main, user=ACCOUNT, groups=GROUPS) as operator:
        yield operator


def greeting(name: str, to: str) -> dict:
    return {"apiVersion": "example.com/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": {"to": to}}


def text(sandbox: Sandbox, name: str, namespace: str) -> str:
    return sandbox.get("configmap", name, namespace)["data"]["text"]


def test_a_greeting_is_said_and_changed(running, kcm_sandbox: Sandbox, kcm_namespace: str) -> None:
    kcm_sandbox.apply(greeting("a", "you"), namespace=kcm_namespace)
    kcm_sandbox.wait(lambda: text(kcm_sandbox, "a", kcm_namespace) == "Hello, you!")
    kcm_sandbox.apply(greeting("a", "all"), namespace=kcm_namespace)
    kcm_sandbox.wait(lambda: text(kcm_sandbox, "a", kcm_namespace) == "Hello, all!")
    kcm_sandbox.wait(lambda: kcm_sandbox.get("greeting", "a", kcm_namespace)["status"]["greeted"] == "all")


def test_it_belongs_to_its_greeting(running, kcm_sandbox: Sandbox, kcm_namespace: str) -> None:
    kcm_sandbox.apply(greeting("a", "you"), namespace=kcm_namespace)
    found = kcm_sandbox.wait(lambda: kcm_sandbox.get("configmap", "a", kcm_namespace))
    assert [owner["kind"] for owner in found["metadata"]["ownerReferences"]] == ["Greeting"]


def test_an_api_server_that_is_away_is_waited_for(running, kcm_sandbox: Sandbox, kcm_namespace: str) -> None:
    with kcm_sandbox.inject(Fault("refuse", user=ACCOUNT, resources=("configmaps",), times=1)):
        kcm_sandbox.apply(greeting("a", "you"), namespace=kcm_namespace)
        kcm_sandbox.advance_until(lambda: text(kcm_sandbox, "a", kcm_namespace), limit=120)


def test_nobody_is_not_greeted(kcm_sandbox: Sandbox, kcm_namespace: str) -> None:
    with pytest.raises(ManifestError, match="spec.to in body should be at least 1 chars long"):
        kcm_sandbox.apply(greeting("b", ""), namespace=kcm_namespace)


def test_the_deployment_runs(kcm_sandbox: Sandbox) -> None:
    kcm_sandbox.apply(Path(greeting_operator.__file__).parent / "deploy" / "deployment.yaml")
    kcm_sandbox.wait(lambda: kcm_sandbox.get("deploy", "greeting-operator")["status"]["readyReplicas"] == 1)
