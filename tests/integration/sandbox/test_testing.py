"""What kcm_cli.testing offers beyond the examples of its page: the way back, users, faults over TLS."""

import kubernetes
import pytest

from kcm_cli.sandbox.hosted import HostedSandbox
from kcm_cli.testing import Fault, HostOptions, Sandbox, SandboxError

WIDGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.reset.example.com"},
    "spec": {
        "group": "reset.example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}
WIDGET = {"apiVersion": "reset.example.com/v1", "kind": "Widget", "metadata": {"name": "w", "finalizers": ["a.b/c"]}}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web"},
    "spec": {
        "replicas": 2,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}


@pytest.fixture
def core(kcm_kubeconfig):
    with kubernetes.config.new_client_from_config(kcm_kubeconfig) as client:
        yield kubernetes.client.CoreV1Api(client)


def test_reset_brings_back_what_was_there_and_takes_what_came(kcm_sandbox, kcm_namespace, core):
    kept = {"metadata": {"name": "kept"}, "data": {"k": "old"}}
    core.create_namespaced_config_map(kcm_namespace, kept)
    core.create_namespaced_config_map(kcm_namespace, {"metadata": {"name": "gone"}})
    kcm_sandbox.apply(WEB, namespace=kcm_namespace)
    kcm_sandbox.advance(5)
    pods = sorted(pod.metadata.name for pod in core.list_namespaced_pod(kcm_namespace).items)
    before = kcm_sandbox.snapshot()

    kcm_sandbox.apply(WIDGETS, WIDGET, namespace=kcm_namespace)
    core.delete_namespaced_config_map("gone", kcm_namespace)
    core.patch_namespaced_config_map("kept", kcm_namespace, {"data": {"k": "new"}})
    core.delete_collection_namespaced_pod(kcm_namespace)
    kcm_sandbox.fail_node("node-2")
    kcm_sandbox.add_node("extra")
    kcm_sandbox.make_namespace("reset-extra")
    kcm_sandbox.inject(Fault("refuse", resources=("pods",)))
    kcm_sandbox.advance(60)

    kcm_sandbox.reset(before)
    maps = {one.metadata.name: one.data for one in core.list_namespaced_config_map(kcm_namespace).items}
    assert (maps["kept"], maps["gone"]) == ({"k": "old"}, None)
    assert sorted(pod.metadata.name for pod in core.list_namespaced_pod(kcm_namespace).items) == pods
    assert "extra" not in {node.metadata.name for node in core.list_node().items}
    assert "reset-extra" not in {one.metadata.name for one in core.list_namespace().items}
    kcm_sandbox.advance(120)
    ready = {node.metadata.name: node.status.conditions[-1].status for node in core.list_node().items}
    assert ready["node-2"] == "True"
    kcm_sandbox.apply(WIDGETS, {**WIDGET, "metadata": {"name": "w"}}, namespace=kcm_namespace)
    kcm_sandbox.reset(before)


def test_nothing_is_left_of_a_test(kcm_sandbox, kcm_reset, core):
    core.create_namespaced_config_map("default", {"metadata": {"name": "left", "finalizers": ["a.b/c"]}})


def test_nothing_was_left(kcm_sandbox, core):
    assert "left" not in {one.metadata.name for one in core.list_namespaced_config_map("default").items}


def test_faults_break_connections_and_watches_over_tls(kcm_sandbox, kcm_namespace):
    kubeconfig = kcm_sandbox.add_user("under-test", ["system:masters"], namespace=kcm_namespace)
    with kubernetes.config.new_client_from_config(kubeconfig) as client:
        core = kubernetes.client.CoreV1Api(client)
        with (
            kcm_sandbox.inject(Fault("away", user="under-test", times=4)) as away,
            pytest.raises(Exception, match="Max retries|aborted|reset"),
        ):
            core.list_namespaced_pod(kcm_namespace)
        assert away.happened
        events = kubernetes.watch.Watch().stream(core.list_namespaced_config_map, kcm_namespace)
        assert next(events)["type"] == "ADDED"
        with kcm_sandbox.inject(Fault("cut", user="under-test", broken=True)) as cut:
            kcm_sandbox.wait(lambda: cut.happened)
            with pytest.raises(Exception, match="broken|incomplete|IncompleteRead|reset|prematurely"):
                list(events)


def test_one_that_runs_is_not_started_again(kcm_sandbox, kcm_namespace):
    with pytest.raises(SandboxError, match="is started once"):
        kcm_sandbox.start()
    kcm_sandbox.advance(1)  # it goes on


def test_flags_without_controllers_are_an_error():
    with pytest.raises(ValueError, match="no controllers here to take --controllers"):
        HostedSandbox(HostOptions(flags=("--controllers=*",)))
    with pytest.raises(ValueError, match="no controllers"):
        Sandbox(HostOptions(controllers=False, flags=("-v=2",)))


def test_without_controllers_nothing_makes_replica_sets():
    with Sandbox(HostOptions(nodes=0, controllers=False)) as sandbox:
        sandbox.apply(WEB)
        sandbox.advance(10)
        assert "replicasets" not in sandbox.report()


def test_what_was_being_deleted_at_the_snapshot_is_not_brought_back(kcm_sandbox, kcm_namespace, core):
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    core.create_namespaced_pod(kcm_namespace, pod)
    kcm_sandbox.advance(5)
    kcm_sandbox.make_namespace("ending")
    core.create_namespaced_config_map("ending", {"metadata": {"name": "held", "finalizers": ["a.b/c"]}})
    core.delete_namespace("ending")
    core.delete_namespaced_pod("p", kcm_namespace, grace_period_seconds=30)
    before = kcm_sandbox.snapshot()

    core.patch_namespaced_config_map("held", "ending", {"metadata": {"finalizers": None}})
    kcm_sandbox.advance(120)
    kcm_sandbox.reset(before)
    assert "ending" not in {one.metadata.name for one in core.list_namespace().items}
    assert core.list_namespaced_pod(kcm_namespace).items == []


def test_a_reset_takes_the_lease_of_an_operator_and_leaves_those_of_the_system(kcm_sandbox, kcm_namespace, core):
    """An operator that is started again would wait for one that has gone."""
    leases = kubernetes.client.CoordinationV1Api(core.api_client)
    node = kcm_sandbox.add_node()
    before = kcm_sandbox.snapshot()
    leases.create_namespaced_lease(kcm_namespace, {"metadata": {"name": "operator"}, "spec": {"holderIdentity": "a"}})
    leases.create_namespaced_lease("kube-system", {"metadata": {"name": "scheduler"}, "spec": {"holderIdentity": "a"}})
    kcm_sandbox.advance(30)
    renewed = leases.read_namespaced_lease(node, "kube-node-lease").spec.renew_time
    kcm_sandbox.reset(before)
    assert leases.list_namespaced_lease(kcm_namespace).items == []
    assert leases.read_namespaced_lease("scheduler", "kube-system")
    assert leases.read_namespaced_lease(node, "kube-node-lease").spec.renew_time >= renewed
    leases.delete_namespaced_lease("scheduler", "kube-system")
    kcm_sandbox.remove_node(node)
