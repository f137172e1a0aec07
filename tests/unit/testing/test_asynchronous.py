"""``AsyncSandbox`` has what ``Sandbox`` has, and the fixtures have types that tests can import."""

import asyncio
import gc
import inspect
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import kcm_cli.testing
from kcm_cli.testing import AsyncSandbox, HostOptions, OperatorError, Rule, Sandbox, public, pytest_plugin


def test_a_call_that_is_not_awaited_names_the_method() -> None:
    with pytest.warns(RuntimeWarning, match=r"AsyncSandbox\.apply' was never awaited"):
        AsyncSandbox.of(Sandbox()).apply()  # type: ignore[unused-coroutine]
        gc.collect()


ON_ITS_LOOP = {"server", "loop", "clock", "call", "run", "aside"}
"""What is for code on the sandbox's own loop."""
OF_OTHERS = {"advance_async", "wait_async", "remove_fault", "new_identity"}
"""The first two are ``advance`` and ``wait`` here; the others are for operators and faults."""
OF_CONDITIONS = {"wait", "advance_until"}
"""They take conditions that are awaited."""


def interface(of: type) -> dict[str, Any]:
    return {name: value for name, value in vars(of).items() if not name.startswith("_")}


def test_an_asynchronous_sandbox_has_all_methods_with_their_parameters() -> None:
    plain, asynchronous = interface(Sandbox), interface(AsyncSandbox)
    missing = plain.keys() - asynchronous.keys()
    assert missing == ON_ITS_LOOP | OF_OTHERS
    for name in plain.keys() & asynchronous.keys():
        if isinstance(plain[name], property):
            assert isinstance(asynchronous[name], property), name
            continue
        of_plain, of_asynchronous = map(inspect.signature, (plain[name], asynchronous[name]))
        assert inspect.iscoroutinefunction(inspect.unwrap(asynchronous[name])) or name in vars(AsyncSandbox), name
        if name not in OF_CONDITIONS:
            assert of_asynchronous.parameters == of_plain.parameters, name
        else:
            assert list(of_asynchronous.parameters) == list(of_plain.parameters), name


@pytest.mark.parametrize("name", sorted(name for name in vars(pytest_plugin) if name.startswith("kcm_")))
def test_the_value_of_a_fixture_has_a_type_that_can_be_imported(name: str) -> None:
    from kcm_cli.plan import TwinOf  # imported here: it is public there

    names = {**vars(public), "TwinOf": TwinOf, **vars(pytest_plugin)}
    fixture = inspect.unwrap(vars(pytest_plugin)[name])
    fixture = getattr(fixture, "__wrapped__", getattr(fixture, "_fixture_function", fixture))
    hint = get_type_hints(fixture, names)["return"]
    value = (getattr(hint, "__args__", ()) or (hint,))[0]
    if getattr(value, "__module__", "").startswith("kcm_cli.testing"):
        assert getattr(kcm_cli.testing, value.__name__) is value
    assert (Path(kcm_cli.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (
            {"service_cluster_ip_range": "10.0.0.0"},
            "HostOptions: service_cluster_ip_range: 10.0.0.0/32 has fewer than 8",
        ),
        ({"service_cluster_ip_range": "x"}, 'HostOptions: service_cluster_ip_range: "x" is no CIDR'),
        ({"service_cluster_ip_range": "10.0.0.0/8,11.0.0.0/8"}, "two CIDRs are of different families"),
        ({"service_cluster_ip_range": "10.244.0.0/16"}, "HostOptions: service_cluster_ip_range: .* overlaps"),
        (
            {"service_cluster_ip_range": "10.0.0.0/29", "system_pods": True},
            "HostOptions: service_cluster_ip_range: 10.0.0.0/29 is too small",
        ),
        ({"system_pods": True, "nodes": 0}, "HostOptions: system_pods need a node"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        HostOptions(**options)


LOST = Rule({"exit-code": "1", "run-time": "2s"}, image="*/crash:*")
RANGES = ("10.96.0.0/12", "fd00:10:96::/112")
OPTIONS = HostOptions(nodes=2, rules=(LOST,), service_cluster_ip_range=",".join(RANGES), system_pods=True)


@pytest.mark.real_time
async def test_a_cluster_like_that_of_kubeadm() -> None:
    async with AsyncSandbox(OPTIONS) as sandbox:
        images = {"a": "example.com/crash:1", "b": "example.com/other"}
        containers = [{"name": name, "image": image} for name, image in images.items()]
        service = {"ipFamilyPolicy": "RequireDualStack", "ports": [{"port": 80}]}
        for kind, name, spec in (("Pod", "p", {"containers": containers}), ("Service", "s", service)):
            await sandbox.apply({"apiVersion": "v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
        await sandbox.advance(60)
        states = (await sandbox.get("pod", "p"))["status"]["containerStatuses"]
        assert [one["restartCount"] > 1 for one in states] == [True, False]
        addresses = (await sandbox.get("svc", "s"))["spec"]["clusterIPs"]
        assert all(ip_address(one) in ip_network(of) for one, of in zip(addresses, RANGES, strict=True))
        assert (await sandbox.get("svc", "kubernetes"))["spec"]["clusterIP"] == "10.96.0.1"
        assert (await sandbox.get("svc", "kube-dns", "kube-system"))["spec"]["clusterIP"] == "10.96.0.10"
        assert (await sandbox.get("servicecidr", "kubernetes", ""))["spec"]["cidrs"] == [*RANGES]
        pods = await sandbox.list("pods", "kube-system")
        assert {pod["status"]["phase"] for pod in pods} == {"Running"}
        roles = [pod["metadata"]["labels"].get("component") or pod["metadata"]["labels"]["k8s-app"] for pod in pods]
        assert sorted(roles) == sorted(
            ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", *["kube-dns", "kube-proxy"] * 2]
        )


@pytest.mark.real_time
async def test_an_operator_of_an_asynchronous_sandbox() -> None:
    async def main(kubeconfig: str) -> None:
        raise RuntimeError(kubeconfig)

    async with AsyncSandbox(HostOptions(nodes=0, controllers=False)) as sandbox:
        with pytest.raises(OperatorError, match=r"the operator has ended: RuntimeError\('.*kubeconfig'\)"):
            async with await sandbox.operator(main, user="me") as operator:
                while operator.alive():
                    await asyncio.sleep(0.01)
        assert operator.user == "me"


@pytest.mark.real_time
async def test_an_advance_that_is_cancelled_ends() -> None:
    async with AsyncSandbox(HostOptions(nodes=1, controllers=False)) as sandbox:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await sandbox.advance(1e9)
        before = await sandbox.now()
        await sandbox.advance(60)
        passed = (await sandbox.now() - before).total_seconds()
        assert 60 <= passed < 3600
