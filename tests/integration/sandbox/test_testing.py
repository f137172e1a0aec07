"""kcm_cli.testing beyond the examples of its page: reset, users, faults over TLS."""

import asyncio
import time
from datetime import timedelta

import kubernetes
import pytest

from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.snapshots import NODES
from kcm_cli.testing import (
    AlreadyExists,
    AsyncSandbox,
    Fault,
    HostOptions,
    ManifestError,
    NotFound,
    NotSimulated,
    Sandbox,
    SandboxError,
    UnhitFault,
)
from kcm_cli.testing.perturb.campaign import perturb

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


def test_reset_restores_old_objects_and_deletes_new_ones(kcm_sandbox, kcm_namespace, core):
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
    with pytest.raises(kubernetes.client.ApiException):
        core.list_namespaced_pod(kcm_namespace)
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


@pytest.fixture
def nothing_left(core):
    """Requested before ``kcm_reset``, so that it looks after the reset."""
    yield
    assert "left" not in {one.metadata.name for one in core.list_namespaced_config_map("default").items}


def busy(kubeconfig, stop):
    """Writes without a pause."""
    with kubernetes.config.new_client_from_config(kubeconfig) as client:
        core = kubernetes.client.CoreV1Api(client)
        while not stop.is_set():
            core.patch_namespace("default", {"metadata": {"labels": {"busy": str(time.monotonic_ns())}}})


def test_an_operator_ends_before_all_is_restored(kcm_operator, kcm_reset):
    """In whatever order a test names the two."""
    kcm_operator(busy)


def test_a_test_leaves_no_objects(nothing_left, kcm_reset, core):
    core.create_namespaced_config_map("default", {"metadata": {"name": "left", "finalizers": ["a.b/c"]}})


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


def test_a_running_sandbox_cannot_be_started_again(kcm_sandbox, kcm_namespace):
    with pytest.raises(SandboxError, match="is started once"):
        kcm_sandbox.start()
    kcm_sandbox.advance(1)  # it goes on


def test_flags_without_controllers_are_an_error():
    with pytest.raises(ValueError, match="no controllers here to take -v=2"):
        Sandbox(HostOptions(controllers=False, flags=("-v=2",)))


def test_without_controllers_no_replica_sets_are_created():
    with Sandbox(HostOptions(nodes=0, controllers=False)) as sandbox:
        sandbox.apply(WEB)
        sandbox.advance(10)
        assert "replicasets" not in sandbox.report()


def test_reset_does_not_restore_objects_terminating_at_the_snapshot(kcm_sandbox, kcm_namespace, core):
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


def test_a_snapshot_has_what_follows_from_the_requests_before_it(kcm_sandbox, kcm_namespace):
    """Without that, a reset would undo what the controllers do at once, again and again."""
    kcm_sandbox.apply(WEB, namespace=kcm_namespace)
    node = kcm_sandbox.add_node()
    before = kcm_sandbox.snapshot()
    kcm_sandbox.advance(30)

    def uids():
        pods = [one["metadata"]["uid"] for one in kcm_sandbox.list("pods", kcm_namespace)]
        return sorted(pods), kcm_sandbox.get("csinodes", node)["metadata"]["uid"]

    then = uids()
    kcm_sandbox.reset(before)
    assert uids() == then
    kcm_sandbox.remove_node(node)


def test_a_reset_deletes_leases_of_operators_and_keeps_those_of_the_system(kcm_sandbox, kcm_namespace, core):
    """A restarted operator would wait for one that has ended."""
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


def test_a_reset_restores_the_runs_of_containers(kcm_sandbox, kcm_namespace, core):
    """Else a container that one test has killed waits for its backoff in the next one, or has restarted once more."""
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    core.create_namespaced_pod(kcm_namespace, pod)
    kcm_sandbox.advance(5)
    before, since = kcm_sandbox.snapshot(), kcm_sandbox.now()

    def container():
        (found,) = kcm_sandbox.get("pod", "p", kcm_namespace)["status"]["containerStatuses"]
        return found

    running = container()
    for backoff_s in (1, 11, 21, 41, 81, 1):
        kcm_sandbox.kill_container(kcm_namespace, "p")
        kcm_sandbox.advance(backoff_s)
    assert container()["state"]["waiting"]["reason"] == "CrashLoopBackOff"
    began = kcm_sandbox.now()
    kcm_sandbox.reset(before)
    assert (container(), kcm_sandbox.now() < began + timedelta(seconds=30)) == (running, True)
    kcm_sandbox.kill_container(kcm_namespace, "p", reason="OOMKilled")
    kcm_sandbox.advance(1)
    found = container()
    assert (found["restartCount"], list(found["state"])) == (1, ["running"])
    assert found["lastState"]["terminated"]["reason"] == "OOMKilled"
    assert parse_time(found["lastState"]["terminated"]["startedAt"]) < since


@pytest.fixture(scope="module")
def lone():
    with Sandbox(HostOptions(nodes=0, controllers=False)) as sandbox:
        yield sandbox


async def _awaited():
    return False


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda one: one.advance(1, patience="x"), "advance: patience has to be a number, not 'x'"),
        (lambda one: one.advance(1, patience=-1), "patience is a number of seconds up to a day, not -1"),
        (lambda one: one.advance(1, patience=1e300), "patience is a number of seconds up to a day, not 1e"),
        (lambda one: one.advance("5"), "advance: seconds has to be a number, not '5'"),
        (lambda one: one.advance(10**400), "advance: seconds has to be a number, not 1000"),
        (lambda one: one.apply(None), "apply: manifests has to be a string or a path or a dict, not None"),
        (lambda one: one.reset(None), "reset: snapshot has to be of type Snapshot, not None"),
        (lambda one: one.inject("lose"), "inject: fault has to be of type Fault, not 'lose'"),
        (
            lambda one: one.add_user("jane", "system:masters"),
            r"groups has to be a list \(a string each\), not 'system:m",
        ),
        (lambda one: one.add_user(""), "a user needs a name"),
        (lambda one: one.wait(_awaited), "conditions that are: wait_async"),
        (lambda one: one.advance_until(_awaited, 1), "conditions that are: wait_async"),
        (lambda one: one.set_logs("web", "text"), r"pods are named as NAMESPACE/NAME, with \* and \?, not 'web'"),
        (lambda one: one.answer_exec("a/web", "text"), "answer_exec: function has to be a function, not 'text'"),
        (lambda one: one.forward("a/web", 0, 1), "0 is no port"),
        (
            lambda one: one.kill_container("a", "web", exit_code=-9),
            "an exit code is a number from 0 to 2147483647, not",
        ),
        (lambda one: Fault("refuse", verbs=("gett",)), "not gett"),
        (lambda one: Fault("delay", delay_s=(2, 1)), "delay_s a minimum and a maximum"),
        (lambda one: HostOptions(nodes="3"), "HostOptions: nodes has to be a whole number, not '3'"),
        (lambda one: HostOptions(nodes=-1), "HostOptions: there can be 0 to 6143 nodes, not -1"),
        (lambda one: HostOptions(nodes=6144), "HostOptions: there can be 0 to 6143 nodes, not 6144"),
        (lambda one: HostOptions(manifests="crds"), "HostOptions: manifests has to be a list"),
        (lambda one: HostOptions(heartbeat_s=0), "heartbeat_s is a number of seconds above 0, not 0"),
        (lambda one: Sandbox({"nodes": 1}), "Sandbox: options has to be of type HostOptions or None, not {'nodes': 1}"),
        (lambda one: perturb(one, _awaited), "takes 0 positional arguments"),
        (lambda one: perturb(one, lambda trial: None), "the scenario has started no operator"),
        (lambda one: perturb(one, lambda trial: None, kinds="crash"), "perturb: kinds has to be a list"),
    ],
)
def test_an_invalid_argument_is_named_without_side_effects(lone, call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call(lone)
    lone.advance(1)


def test_a_snapshot_is_of_one_cluster(lone, kcm_sandbox):
    with pytest.raises(ValueError, match="of another cluster"):
        lone.reset(kcm_sandbox.snapshot())


@pytest.mark.parametrize("name", ["kubeconfig", "clock", "loop", "server"])
def test_a_sandbox_that_was_not_started_is_an_error(name):
    with pytest.raises(SandboxError, match="not running"):
        getattr(Sandbox(), name)


def test_an_asynchronous_sandbox_calls_the_methods_of_a_subclass():
    class Other(Sandbox):
        def report(self, namespace="default"):
            return f"objects of {namespace}"

    assert asyncio.run(AsyncSandbox.of(Other()).report("a")) == "objects of a"


@pytest.mark.parametrize(
    ("resources", "why"),
    [
        (("pod",), 'has hit no request: no resource has the name "pod"'),
        (("pods", "deployment.apps"), 'no resource has the name "deployment.apps"'),
        (("pods/statuses", "*/scale"), 'no resource has the name "pods/statuses"'),
        (("deployments.apps/status",), "the fault refuse has hit no request$"),
    ],
)
def test_a_fault_that_has_hit_nothing_is_told(kcm_sandbox, resources, why):
    with pytest.warns(UnhitFault, match=why), kcm_sandbox.inject(Fault("refuse", user="nobody", resources=resources)):
        pass


@pytest.mark.filterwarnings("error::kcm_cli.testing.UnhitFault")
def test_a_fault_that_has_hit_nothing_ends_where_that_is_an_error(kcm_sandbox, kcm_namespace):
    def active():
        return kcm_sandbox.run(lambda: list(kcm_sandbox.server.api.faults.all))

    nobody = Fault("refuse", user="nobody")
    with pytest.raises(UnhitFault), kcm_sandbox.inject(nobody):
        pass
    assert active() == []
    before = kcm_sandbox.snapshot()
    kcm_sandbox.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}, namespace=kcm_namespace)
    first, second = kcm_sandbox.inject(nobody), kcm_sandbox.inject(Fault("delay", user="nobody"))
    with pytest.raises(UnhitFault, match="refuse.*\n.*delay"):
        kcm_sandbox.reset(before)
    assert active() == []
    assert [one["metadata"]["name"] for one in kcm_sandbox.list("cm", kcm_namespace)] in ([], ["kube-root-ca.crt"])
    first.remove()
    second.remove()


@pytest.mark.parametrize("kind", ["deploy", "deployments", "Deployment", "deployments.apps"])
def test_objects_are_read_by_any_name_of_their_kind(kcm_sandbox, kcm_namespace, kind):
    kcm_sandbox.apply(WEB, namespace=kcm_namespace)
    found = kcm_sandbox.get(kind, "web", kcm_namespace)
    assert (found["apiVersion"], found["kind"], found["spec"]["replicas"]) == ("apps/v1", "Deployment", 2)
    (listed,) = kcm_sandbox.list(kind, kcm_namespace)
    assert (listed["apiVersion"], listed["kind"], listed["metadata"]["name"]) == ("apps/v1", "Deployment", "web")


def test_objects_are_listed_by_their_labels_and_in_all_namespaces(kcm_sandbox, kcm_namespace):
    for name, labels in (("a", {"app": "x"}), ("b", {"app": "y"})):
        kcm_sandbox.apply(
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": labels}},
            namespace=kcm_namespace,
        )
    assert [one["metadata"]["name"] for one in kcm_sandbox.list("cm", kcm_namespace, "app=y")] == ["b"]
    everywhere = {(one["metadata"]["namespace"], one["metadata"]["name"]) for one in kcm_sandbox.list("cm")}
    assert {(kcm_namespace, "a"), (kcm_namespace, "b")} < everywhere
    assert {one["metadata"]["name"] for one in kcm_sandbox.list("nodes", "ignored")} >= {"node-1"}


def test_an_object_that_is_awaited_need_not_exist_yet(kcm_sandbox, kcm_namespace):
    kcm_sandbox.apply(WEB, namespace=kcm_namespace)
    assert kcm_sandbox.wait(lambda: kcm_sandbox.get("deploy", "web", kcm_namespace)["status"]["readyReplicas"] == 2)
    with pytest.raises(TimeoutError, match="not found"):
        kcm_sandbox.wait(lambda: kcm_sandbox.get("deploy", "other", kcm_namespace), timeout=0)


def test_what_cannot_be_read_is_a_public_error(kcm_sandbox, kcm_namespace):
    with pytest.raises(NotFound, match='deployments.apps "web" not found'):
        kcm_sandbox.get("deploy", "web", kcm_namespace)
    with pytest.raises(ValueError, match="the cluster serves no kind 'gadgets'"):
        kcm_sandbox.list("gadgets")
    for name in ("", "web/status"):
        with pytest.raises(ValueError, match="an object has a name"):
            kcm_sandbox.get("deploy", name, kcm_namespace)
    for read in (kcm_sandbox.get, kcm_sandbox.trace):
        with pytest.raises(ValueError, match="deployments are in namespaces, and web is in none"):
            read("deploy", "web", "")


def test_errors_can_be_caught(kcm_sandbox):
    for act in (kcm_sandbox.fail_node, kcm_sandbox.recover_node, kcm_sandbox.remove_node):
        with pytest.raises(NotFound):
            act("nobody")
    with pytest.raises(NotFound):
        kcm_sandbox.set_ready("default", "nobody", True)
    with pytest.raises(AlreadyExists):
        kcm_sandbox.add_node("node-1")
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "real"}}
    kcm_sandbox.apply(node)
    with pytest.raises(NotSimulated):
        kcm_sandbox.fail_node("real")
    for wrong, what in (
        ({}, "apiVersion"),
        ({"apiVersion": "v1"}, "kind"),
        ({"apiVersion": 1, "kind": "Pod"}, "no string"),
    ):
        with pytest.raises(ManifestError, match=what):
            kcm_sandbox.apply({**wrong, "metadata": {"name": "x"}})


def test_the_controllers_give_nodes_their_ranges_if_their_flags_say_so():
    flags = ("--allocate-node-cidrs", "--cluster-cidr=10.9.0.0/16")
    with Sandbox(HostOptions(nodes=2, flags=flags)) as sandbox:
        sandbox.advance(30)
        nodes = sandbox.run(lambda: [one.doc["spec"]["podCIDR"] for one in sandbox.server.store.list(NODES)])
    assert sorted(nodes) == ["10.9.0.0/24", "10.9.1.0/24"]
