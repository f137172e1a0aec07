"""The nodes of pods, and the reasons why no node fits: tables."""

import random
from collections import Counter

import pytest

from kcm_cli.machinery import codec
from kcm_cli.machinery.labels import LabelSelector
from kcm_cli.sandbox.scheduler.decide import Placement, decide
from kcm_cli.sandbox.scheduler.podinfo import selector_of
from kcm_cli.sandbox.scheduler.spread import spread_filter
from kcm_cli.sandbox.scheduler.state import ClusterState
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import choices, node_doc, placed, pod, state_of, volumes_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
APP_A = {"matchLabels": {"app": "a"}}
ANTI = {"podAntiAffinity": {REQUIRED: [{"labelSelector": APP_A, "topologyKey": "kubernetes.io/hostname"}]}}
NEAR = {"podAffinity": {REQUIRED: [{"labelSelector": APP_A, "topologyKey": "zone"}]}}


ONE = "0/1 nodes are available: "


def zoned(name: str, zone: str, **spec):
    return node_doc(name, {"zone": zone}, **spec)


def spread(when="DoNotSchedule", key="zone", **more):
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": when,
            "labelSelector": {"matchLabels": {"app": "a"}},
            **more,
        }
    ]


NO_EXECUTE = {"key": "k", "effect": "NoExecute"}
TAINT = {"key": "k", "value": "v", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("info", "nodes", "expected"),
    [
        pytest.param(pod("p"), [], "no nodes available to schedule pods", id="no nodes"),
        pytest.param(
            pod("p"), [node_doc("n", unschedulable=True)], ONE + "1 node(s) were unschedulable.", id="cordoned"
        ),
        pytest.param(
            pod("p", tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]),
            [node_doc("n", unschedulable=True)],
            "n",
            id="cordoned but tolerated",
        ),
        pytest.param(
            pod("p"), [node_doc("n", taints=[TAINT])], ONE + "1 node(s) had untolerated taint(s).", id="taint"
        ),
        pytest.param(
            pod("p"), [node_doc("n", taints=[NO_EXECUTE])], ONE + "1 node(s) had untolerated taint(s).", id="NoExecute"
        ),
        pytest.param(
            pod("p", tolerations=[{"key": "k", "value": "v"}]), [node_doc("n", taints=[TAINT])], "n", id="tolerated"
        ),
        pytest.param(
            pod("p"), [node_doc("n", taints=[{"key": "k", "effect": "PreferNoSchedule"}])], "n", id="soft taint"
        ),
        pytest.param(
            pod("p", nodeSelector={"disk": "ssd"}),
            [node_doc("n")],
            ONE + "1 node(s) didn't match Pod's node affinity/selector.",
            id="selector",
        ),
        pytest.param(
            pod("p", nodeSelector={"disk": "ssd"}), [node_doc("m"), node_doc("n", {"disk": "ssd"})], "n", id="selected"
        ),
        pytest.param(pod("p", cpu="5"), [node_doc("n")], ONE + "1 Insufficient cpu.", id="too big"),
        pytest.param(
            pod("p", cpu="5", memory="9Gi"),
            [node_doc("n", pods="0")],
            ONE + "1 Insufficient cpu, 1 Insufficient memory, 1 Too many pods.",
            id="all that lacks",
        ),
        pytest.param(
            pod("p", cpu="5"),
            [node_doc("a"), node_doc("b"), node_doc("c", taints=[TAINT])],
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            id="counted and sorted",
        ),
    ],
)
def test_single_nodes(info, nodes, expected):
    assert placed(info, state_of(*nodes)) == expected


def test_what_pods_have_counts_against_them():
    state = state_of(node_doc("n"), pods={"n": [pod("a", cpu="3")]})
    assert placed(pod("p", cpu="1"), state) == "n"
    assert placed(pod("p", cpu="1001m"), state) == ONE + "1 Insufficient cpu."


def test_requests_of_init_containers_and_sidecars():
    def sized(*inits):
        containers = [
            {"name": str(i), "resources": {"requests": {"cpu": c}}, **more} for i, (c, more) in enumerate(inits)
        ]
        return pod("p", cpu="1", initContainers=containers).requests["cpu"]

    assert sized(("500m", {})) == 1000
    assert sized(("2", {})) == 2000
    assert sized(("500m", {"restartPolicy": "Always"})) == 1500
    assert sized(("500m", {"restartPolicy": "Always"}), ("1", {})) == 1500
    assert sized(("500m", {"restartPolicy": "Always"}), ("2", {})) == 2500
    assert sized(("2", {}), ("500m", {"restartPolicy": "Always"})) == 2000


def resized(asked, resources, allocated, *conditions):
    """A pod of one container with the allocated resources in its status."""
    status = {"name": "c", "resources": {"requests": resources}, "allocatedResources": allocated}
    return pod("p", cpu=asked, status={"containerStatuses": [status], "conditions": list(conditions)})


INFEASIBLE = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}


@pytest.mark.parametrize(
    ("info", "cpu", "resizing"),
    [
        pytest.param(resized("2", {"cpu": "1"}, {"cpu": "1"}), 2000, True, id="grows"),
        pytest.param(resized("1", {"cpu": "2"}, {"cpu": "1"}), 2000, True, id="shrinks"),
        pytest.param(resized("1", {"cpu": "1"}, {"cpu": "3"}), 3000, True, id="was promised more"),
        pytest.param(resized("9", {"cpu": "1"}, {"cpu": "2"}, INFEASIBLE), 2000, True, id="asks for too much"),
        pytest.param(resized("1", {"cpu": "1"}, {"cpu": "1"}), 1000, False, id="has what it asks for"),
        pytest.param(pod("p", cpu="1"), 1000, False, id="runs nowhere"),
    ],
)
def test_a_pod_that_is_resized_counts_as_the_most(info, cpu, resizing):
    assert (info.requests["cpu"], info.resizing) == (cpu, resizing)


@pytest.mark.parametrize(("policy", "cpu"), [({"restartPolicy": "Always"}, 4000), ({}, 2000)])
def test_a_sidecar_that_is_resized_counts_with_what_it_has(policy, cpu):
    containers = [{"name": "s", "resources": {"requests": {"cpu": "2"}}, **policy}]
    status = {"name": "s", "resources": {"requests": {"cpu": "3"}}}
    info = pod("p", cpu="1", initContainers=containers, status={"initContainerStatuses": [status]})
    assert info.requests["cpu"] == cpu


def test_requests_of_a_pod_as_a_whole():
    info = pod("p", cpu="1", resources={"requests": {"cpu": "3", "memory": "1Gi"}})
    assert info.requests == {"cpu": 3000, "memory": 1 << 30}
    assert info.weighed == {"cpu": 1000, "memory": 200 << 20}
    held = {"resources": {"requests": {"cpu": "2"}}, "allocatedResources": {"cpu": "5"}}
    assert pod("p", resources={"requests": {"cpu": "3"}}, status=held).requests == {"cpu": 5000}


def test_a_pod_that_needs_a_newer_kubelet():
    rule = {"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [3]}}
    info = pod("p", containers=[{"name": "c", "restartPolicyRules": [rule]}])
    assert placed(info, state_of(node_doc("n"))) == ONE + "1 node(s) didn't match Pod's required features."
    newer = node_doc("n")
    newer["status"]["declaredFeatures"] = ["RestartAllContainersOnContainerExits"]
    assert placed(info, state_of(newer)) == "n"


def port(number, address="", protocol="TCP"):
    return [{"name": "c", "ports": [{"containerPort": 1, "hostPort": number, "hostIP": address, "protocol": protocol}]}]


@pytest.mark.parametrize(
    ("used", "wanted", "free"),
    [
        pytest.param(port(80), port(80), False, id="same"),
        pytest.param(port(80), port(81), True, id="other number"),
        pytest.param(port(80), port(80, protocol="UDP"), True, id="other protocol"),
        pytest.param(port(80, "10.0.0.1"), port(80, "10.0.0.2"), True, id="other address"),
        pytest.param(port(80, "10.0.0.1"), port(80), False, id="any address"),
    ],
)
def test_host_ports(used, wanted, free):
    state = state_of(node_doc("n"), pods={"n": [pod("a", containers=used)]})
    message = ONE + "1 node(s) didn't have free ports for the requested pod ports."
    assert placed(pod("p", containers=wanted), state) == ("n" if free else message)


@pytest.mark.parametrize(("policy", "free"), [({}, True), ({"restartPolicy": "Always"}, False)])
def test_init_containers_that_end_take_no_port_from_others(policy, free):
    taken = [{**port(80)[0], **policy}]
    state = state_of(node_doc("n"), pods={"n": [pod("a", initContainers=taken)]})
    assert (placed(pod("p", containers=port(80)), state) == "n") is free
    state = state_of(node_doc("n"), pods={"n": [pod("a", containers=port(80))]})
    assert (placed(pod("p", initContainers=taken), state) == "n") is free


def test_pods_of_daemonsets_are_checked_on_their_node_only():
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]
    affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": terms}}}
    state = state_of(node_doc("a"), node_doc("b", cpu="1"), node_doc("c"))
    assert placed(pod("p", affinity=affinity), state) == "b"
    assert placed(pod("p", cpu="2", affinity=affinity), state) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) [NodeAffinity]."
    )


class TestBetweenPods:
    nodes = (zoned("a", "x"), zoned("b", "x"), zoned("c", "y"))

    def test_anti_affinity_of_the_new_pod(self):
        state = state_of(*self.nodes, pods={"a": [pod("o", {"app": "a"})], "b": [pod("q", {"app": "a"})]})
        assert placed(pod("p", affinity=ANTI), state) == "c"

    def test_anti_affinity_of_existing_pods(self):
        state = state_of(zoned("a", "x"), pods={"a": [pod("o", affinity=ANTI)]})
        text = ONE + "1 node(s) didn't satisfy existing pods anti-affinity rules."
        assert placed(pod("p", {"app": "a"}), state) == text
        assert placed(pod("p", {"app": "b"}), state) == "a"

    def test_affinity_to_a_zone(self):
        state = state_of(*self.nodes, pods={"c": [pod("o", {"app": "a"})]})
        assert placed(pod("p", affinity=NEAR), state) == "c"

    def test_affinity_without_matching_pods(self):
        text = "0/3 nodes are available: 3 node(s) didn't match pod affinity rules."
        assert placed(pod("p", affinity=NEAR), state_of(*self.nodes)) == text

    def test_the_first_pod_of_a_group_fits(self):
        assert placed(pod("p", {"app": "a"}, affinity=NEAR), state_of(*self.nodes)) in "abc"

    def test_other_namespaces_do_not_count(self):
        other = pod("o", {"app": "a"}, metadata={"namespace": "other"})
        state = state_of(zoned("a", "x"), pods={"a": [other]})
        assert placed(pod("p", affinity=ANTI), state) == "a"

    def test_namespaces_are_selected_by_their_labels(self):
        term = dict(ANTI["podAntiAffinity"][REQUIRED][0])
        term["namespaceSelector"] = {"matchLabels": {"team": "x"}}
        affinity = {"podAntiAffinity": {REQUIRED: [term]}}
        other = pod("o", {"app": "a"}, metadata={"namespace": "other"})
        state = state_of(zoned("a", "x"), pods={"a": [other]})
        assert placed(pod("p", affinity=affinity), state) == "a"
        state.set_namespace("other", {"team": "x"})
        assert placed(pod("p", affinity=affinity), state).endswith("1 node(s) didn't match pod anti-affinity rules.")

    def test_preferred_affinity_and_anti_affinity(self):
        def prefer(kind):
            term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
            return {kind: {PREFERRED: [{"weight": 100, "podAffinityTerm": term}]}}

        state = state_of(*self.nodes, pods={"c": [pod("o", {"app": "a"})]})
        assert choices(pod("p", affinity=prefer("podAffinity")), state) == {"c"}
        assert choices(pod("p", affinity=prefer("podAntiAffinity")), state) == {"a", "b"}


class TestSpread:
    nodes = (zoned("a", "x"), zoned("b", "x"), zoned("c", "y"))

    @pytest.mark.parametrize("seed", range(20))
    def test_nodes_without_the_label_and_sums_that_are_kept(self, seed):
        """Beside the pods of each node, counted anew."""
        rng = random.Random(seed)
        labels = [{"zone": rng.choice("xyz")} if rng.random() < rng.choice((1, 0.8)) else {} for _ in range(6)]
        state = state_of(*(node_doc(f"n{index}", each) for index, each in enumerate(labels)))
        info = pod("p", {"app": "a"}, topologySpreadConstraints=spread(minDomains=rng.choice((1, 3))))
        for number in range(12):
            state.place(pod(f"o{number}", {"app": rng.choice("ab")}), f"n{rng.randrange(6)}")
            check = spread_filter(info, state)
            counts = Counter()
            for node in state.all():
                if "zone" in node.labels:
                    counts[node.labels["zone"]] += sum(each.pod.labels["app"] == "a" for each in node.pods.values())
            least = min(counts.values(), default=0)
            if len(counts) < info.pod.spec.topology_spread_constraints[0].min_domains:
                least = 0
            assert check is not None
            for node in state.all():
                zone = node.labels.get("zone")
                fits = zone is not None and counts[zone] + 1 - least <= 1
                assert (check(node) is None) == fits

    def test_the_emptier_zone(self):
        state = state_of(*self.nodes, pods={"a": [pod("o", {"app": "a"})]})
        assert placed(pod("p", {"app": "a"}, topologySpreadConstraints=spread()), state) == "c"

    def test_no_zone_left(self):
        state = state_of(*self.nodes[:2], zoned("c", "y", cpu="1"), pods={"a": [pod("o", {"app": "a"})]})
        text = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints."
        assert placed(pod("p", {"app": "a"}, cpu="2", topologySpreadConstraints=spread()), state) == text

    def test_nodes_without_the_label(self):
        text = ONE + "1 node(s) didn't match pod topology spread constraints (missing required label)."
        assert placed(pod("p", {"app": "a"}, topologySpreadConstraints=spread()), state_of(node_doc("n"))) == text

    def test_fewer_domains_than_asked_for_count_as_empty_ones(self):
        state = state_of(*self.nodes, pods={"a": [pod("o", {"app": "a"})], "c": [pod("q", {"app": "a"})]})
        info = pod("p", {"app": "a"}, topologySpreadConstraints=spread(minDomains=3))
        assert placed(info, state) == "0/3 nodes are available: 3 node(s) didn't match pod topology spread constraints."

    def test_pods_that_are_not_counted_do_not_skew(self):
        state = state_of(*self.nodes, pods={"a": [pod("o", {"app": "a"})]})
        assert placed(pod("p", {"app": "b"}, topologySpreadConstraints=spread()), state) in "abc"

    def test_tainted_nodes_count_unless_the_policy_excludes_them(self):
        nodes = (zoned("a", "x"), zoned("c", "y", taints=[TAINT]))
        state = state_of(*nodes, pods={"a": [pod("o", {"app": "a"})]})
        info = pod("p", {"app": "a"}, topologySpreadConstraints=spread())
        assert placed(info, state).startswith("0/2 nodes are available")
        honoring = pod("p", {"app": "a"}, topologySpreadConstraints=spread(nodeTaintsPolicy="Honor"))
        assert placed(honoring, state) == "a"

    def test_soft_constraints_only_prefer(self):
        soft = spread("ScheduleAnyway")
        state = state_of(*self.nodes, pods={"a": [pod("o", {"app": "a"})]})
        assert choices(pod("p", {"app": "a"}, topologySpreadConstraints=soft), state) == {"c"}
        assert placed(pod("p", {"app": "a"}, topologySpreadConstraints=soft), state_of(zoned("a", "x"))) == "a"

    def test_a_zone_counts_no_pods_of_nodes_that_are_left_out(self):
        both = [*spread("ScheduleAnyway"), *spread("ScheduleAnyway", "rack")]
        found = [pod(name, {"app": "a"}) for name in "opqrs"]
        nodes = node_doc("a", {"zone": "x", "rack": "1"}), zoned("b", "x"), node_doc("c", {"zone": "y", "rack": "2"})
        state = state_of(*nodes, pods={"b": found})
        assert choices(pod("p", {"app": "a"}, topologySpreadConstraints=both), state) == {"a", "c"}
        zones = [("a", "x", {"disk": "ssd"}), ("b", "x", {}), ("c", "y", {"disk": "ssd"})]
        nodes = [node_doc(name, {"topology.kubernetes.io/zone": zone, **labels}) for name, zone, labels in zones]
        state = state_of(*nodes, pods={"b": found})
        state.selector_for = lambda _: selector_of(LabelSelector({"app": "a"}))
        assert choices(pod("p", {"app": "a"}, nodeSelector={"disk": "ssd"}), state) == {"a", "c"}
        assert choices(pod("p", {"app": "a"}), state) == {"c"}


class TestPreferences:
    def test_the_emptier_node(self):
        state = state_of(node_doc("a"), node_doc("b"), pods={"a": [pod("o", cpu="2")]})
        assert choices(pod("p", cpu="1"), state) == {"b"}

    def test_equal_nodes_are_chosen_by_chance(self):
        assert choices(pod("p"), state_of(node_doc("a"), node_doc("b"))) == {"a", "b"}

    def test_preferred_node_affinity(self):
        preferred = [
            {"weight": 50, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
        ]
        affinity = {"nodeAffinity": {PREFERRED: preferred}}
        state = state_of(node_doc("a"), node_doc("b", {"disk": "ssd"}))
        assert choices(pod("p", affinity=affinity), state) == {"b"}

    def test_soft_taints(self):
        state = state_of(node_doc("a", taints=[{"key": "k", "effect": "PreferNoSchedule"}]), node_doc("b"))
        assert choices(pod("p"), state) == {"b"}

    def test_the_node_that_has_the_image(self):
        state = state_of(node_doc("a", images={"img:latest": 500}), node_doc("b", images={"other": 900}))
        image = [{"name": "c", "image": "img"}]
        assert choices(pod("p", containers=image), state) == {"a"}
        assert choices(pod("p", containers=[{"name": "c", "image": "img:2"}]), state) == {"a", "b"}

    def test_an_image_has_the_size_that_the_first_node_gave(self):
        state = state_of(node_doc("a", images={"img:1": 500}), node_doc("b", images={"img:1": 900}))
        image = [{"name": "c", "image": "img:1"}]
        assert choices(pod("p", containers=image), state) == {"a", "b"}
        state.set_node(NODES.decode(codec.encode(node_doc("c", images={"img:2": 1300}))))
        two = [*image, {"name": "d", "image": "img:2"}]
        assert choices(pod("p", containers=two), state) == {"c"}, "1300 of one node are more than 500 of two"
        state.remove_node("c")
        for name in ("b", "a"):  # no node has it any more
            state.set_node(NODES.decode(codec.encode(node_doc(name))))
        assert choices(pod("p", containers=image), state) == {"a", "b"}
        state.set_node(NODES.decode(codec.encode(node_doc("b", images={"img:1": 900}))))
        assert choices(pod("p", containers=image), state) == {"b"}

    def test_small_images_count_as_none(self):
        state = state_of(node_doc("a", images={"img:1": 20}), node_doc("b"))
        assert choices(pod("p", containers=[{"name": "c", "image": "img:1"}]), state) == {"a", "b"}

    def test_a_node_that_loses_its_image(self):
        state = state_of(node_doc("a", images={"img:1": 500}), node_doc("b"))
        state.set_node(NODES.decode(codec.encode(node_doc("a"))))
        assert choices(pod("p", containers=[{"name": "c", "image": "img:1"}]), state) == {"a", "b"}

    def test_the_nominated_node_comes_first(self):
        state = state_of(node_doc("a"), node_doc("b"), pods={"a": [pod("o", cpu="2")]})
        assert choices(pod("p", cpu="1", status={"nominatedNodeName": "a"}), state) == {"a"}

    def test_the_refusal_of_the_nominated_node_is_reported(self):
        """Also if the pod names nodes and this is not one of them."""
        field = {"key": "metadata.name", "operator": "In", "values": ["b"]}
        affinity = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]}}}
        state = state_of(node_doc("a"), node_doc("b", taints=[TAINT]), node_doc("c"))
        info = pod("p", affinity=affinity, status={"nominatedNodeName": "a"})
        assert placed(info, state) == (
            "0/3 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
            "1 node(s) didn't satisfy plugin(s) [NodeAffinity], 1 node(s) had untolerated taint(s)."
        )

    def test_nominated_pods_keep_their_room_from_lower_priorities(self):
        state = state_of(node_doc("a"))
        state.nominate(pod("high", cpu="4", priority=10), "a")
        assert placed(pod("p", cpu="1"), state) == ONE + "1 Insufficient cpu."
        assert placed(pod("p", cpu="1", priority=11), state) == "a"


CLASS = {"metadata": {"name": "s"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}


MANUAL = {**CLASS, "provisioner": "kubernetes.io/no-provisioner"}
ONLY_B = [{"matchLabelExpressions": [{"key": "kubernetes.io/hostname", "values": ["b"]}]}]
KEPT = {"namespace": "default", "name": "v"}


def claim(name, **spec):
    annotations = {"pv.kubernetes.io/bind-completed": "yes"} if spec.get("volumeName") else {}
    annotations.update(spec.pop("annotations", {}))
    metadata = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    resources = {"requests": {"storage": spec.pop("size", "1Gi")}}
    return {
        "metadata": metadata,
        "spec": {"storageClassName": "s", "accessModes": ["ReadWriteOnce"], "resources": resources, **spec},
    }


def volume(name, *, node="", size="1Gi", **spec):
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}]}]
    affinity = {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}} if node else {}
    whole = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "s",
        **affinity,
        **spec,
    }
    return {
        "metadata": {"name": name, "labels": spec.pop("labels", {})},
        "spec": whole,
        "status": {"phase": "Available"},
    }


def mounts(*names, pod_name="p"):
    return pod(pod_name, volumes=[{"name": n, "persistentVolumeClaim": {"claimName": n}} for n in names])


UNAVAILABLE = "0/2 nodes are available: "


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param(volumes_of(), UNAVAILABLE + 'persistentvolumeclaim "v" not found.', id="no claim"),
        pytest.param(
            volumes_of([claim("v")], [], [{**CLASS, "volumeBindingMode": "Immediate"}]),
            UNAVAILABLE + "pod has unbound immediate PersistentVolumeClaims.",
            id="not bound yet",
        ),
        pytest.param(
            volumes_of([claim("v", volumeName="pv")], [volume("pv", node="b")], [CLASS]),
            "b",
            id="bound to a node's volume",
        ),
        pytest.param(
            volumes_of([claim("v", volumeName="pv")], [volume("pv", node="z")], [CLASS]),
            UNAVAILABLE + "2 node(s) didn't match PersistentVolume's node affinity.",
            id="volume elsewhere",
        ),
        pytest.param(
            volumes_of([claim("v", volumeName="pv")], [], [CLASS]),
            UNAVAILABLE + 'persistentvolume "pv" not found.',
            id="volume lost",
        ),
        pytest.param(volumes_of([claim("v")], [volume("pv", node="a")], [MANUAL]), "a", id="a volume there is"),
        pytest.param(
            volumes_of([claim("v", size="2Gi")], [volume("pv", node="a")], [MANUAL]),
            UNAVAILABLE + "2 node(s) didn't find available persistent volumes to bind.",
            id="too small a volume",
        ),
        pytest.param(
            volumes_of(
                [claim("v")], [volume("small", node="a"), volume("pv", node="b", size="9Gi", claimRef=KEPT)], [MANUAL]
            ),
            "b",
            id="a volume that is kept for the claim",
        ),
        pytest.param(
            volumes_of([claim("v")], [volume("pv", node="a", volumeAttributesClassName="fast")], [MANUAL]),
            UNAVAILABLE + "2 node(s) didn't find available persistent volumes to bind.",
            id="a volume of other attributes",
        ),
        pytest.param(
            volumes_of([claim("v", annotations={"volume.kubernetes.io/selected-node": "b"})], [], [CLASS]),
            "b",
            id="node selected before",
        ),
        pytest.param(
            volumes_of([claim("v")], [], [{**CLASS, "allowedTopologies": ONLY_B}]),
            "b",
            id="allowed topologies",
        ),
    ],
)
def test_volumes(volumes, expected):
    assert placed(mounts("v"), state_of(node_doc("a"), node_doc("b")), volumes) == expected


def test_missing_claims_are_reported_first():
    volumes = volumes_of([{**claim("lost"), "status": {"phase": "Lost"}}])
    state = state_of(node_doc("a"), node_doc("b"))
    assert placed(mounts("lost", "v"), state, volumes) == UNAVAILABLE + 'persistentvolumeclaim "v" not found.'
    devices = pod("p", resourceClaims=[{"name": "c", "resourceClaimName": "gpu"}])
    assert placed(devices, state) == UNAVAILABLE + 'could not find ResourceClaim "default/gpu".'


@pytest.mark.parametrize(
    ("labels", "zone", "fits"),
    [
        pytest.param({}, "q", True, id="cluster without zones"),
        pytest.param({"topology.kubernetes.io/zone": "q"}, "q", True, id="zone"),
        pytest.param({"topology.kubernetes.io/zone": "r"}, "q__r", True, id="one of two zones"),
        pytest.param({"topology.kubernetes.io/zone": "s"}, "q__r", False, id="another zone"),
        pytest.param({"topology.kubernetes.io/region": "s"}, "q", False, id="region without a zone"),
    ],
)
@pytest.mark.parametrize("label", ["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"])
def test_zones_of_volumes(labels, zone, fits, label):
    volumes = volumes_of([claim("v", volumeName="pv")], [volume("pv", labels={label: zone})], [CLASS])
    expected = "n" if fits else ONE + "1 node(s) had no available volume zone."
    assert placed(mounts("v"), state_of(node_doc("n", labels)), volumes) == expected


@pytest.mark.parametrize("bound", [{"volumeName": "pv"}, {}], ids=["bound", "provisioned for the other pod"])
def test_a_volume_for_one_pod_only(bound):
    volumes = volumes_of([claim("v", accessModes=["ReadWriteOncePod"], **bound)], [volume("pv")], [CLASS])
    state = state_of(
        node_doc("a"), pods={"a": [pod("o", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}])]}
    )
    assert placed(mounts("v"), state, volumes) == (
        ONE + "1 node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod."
    )


READS = {"readOnly": True}
GCE = {"gcePersistentDisk": {"pdName": "d"}}
ISCSI = {"iscsi": {"targetPortal": "1.2.3.4", "iqn": "iqn.2001-04.com.example:x", "lun": 0}}
RBD = {"rbd": {"monitors": ["a", "b"], "image": "i"}}


@pytest.mark.parametrize(
    ("used", "wanted", "free"),
    [
        pytest.param(GCE, GCE, False, id="one disk"),
        pytest.param(GCE, {"gcePersistentDisk": {"pdName": "e"}}, True, id="two disks"),
        pytest.param(GCE, {"gcePersistentDisk": {"pdName": "d", **READS}}, False, id="one writes"),
        pytest.param(*[{"gcePersistentDisk": {"pdName": "d", **READS}}] * 2, True, id="both read"),
        pytest.param(*[{"awsElasticBlockStore": {"volumeID": "v", **READS}}] * 2, False, id="ebs, both read"),
        pytest.param(ISCSI, {"iscsi": {**ISCSI["iscsi"], **READS}}, False, id="iscsi"),
        pytest.param(RBD, {"rbd": {"monitors": ["b", "c"], "image": "i", "pool": "rbd"}}, False, id="rbd"),
        pytest.param(RBD, {"rbd": {"monitors": ["c"], "image": "i"}}, True, id="rbd, other monitors"),
    ],
)
def test_disks_that_one_pod_can_mount(used, wanted, free):
    state = state_of(node_doc("n"), pods={"n": [pod("a", volumes=[{"name": "v", **used}])]})
    found = placed(pod("p", volumes=[{"name": "v", **wanted}]), state)
    assert found == ("n" if free else ONE + "1 node(s) had no available disk.")


def capacity(size, zone="x", **fields):
    topology = {"matchLabels": {"zone": zone}}
    metadata = {"name": f"{size}-{zone}", "namespace": "default"}
    return {"metadata": metadata, "storageClassName": "s", "capacity": size, "nodeTopology": topology, **fields}


@pytest.mark.parametrize(
    ("capacities", "fits"),
    [
        pytest.param([capacity("2Gi")], True, id="enough"),
        pytest.param([], False, id="none"),
        pytest.param([capacity("1Mi"), capacity("1Gi")], True, id="the second"),
        pytest.param([capacity("500Mi")], False, id="too little"),
        pytest.param([capacity("9Gi", "y")], False, id="of other nodes"),
        pytest.param([capacity("9Gi", storageClassName="t")], False, id="of another class"),
        pytest.param([capacity("9Gi", maximumVolumeSize="500Mi")], False, id="in small volumes"),
        pytest.param([capacity("9Gi", nodeTopology=None)], False, id="of no nodes"),
        pytest.param([capacity(None)], False, id="not known"),
    ],
)
def test_published_storage_capacity_is_checked(capacities, fits):
    state = state_of(node_doc("n", {"zone": "x"}))
    driver = {"metadata": {"name": "x"}, "spec": {"storageCapacity": True}}
    full = ONE + "1 node(s) did not have enough free storage."
    for annotations in ({}, {"volume.kubernetes.io/selected-node": "n"}):
        known = volumes_of([claim("v", annotations=annotations)], [], [CLASS], [driver], capacities)
        assert placed(mounts("v"), state, known) == ("n" if fits else full)
    silent = {**driver, "spec": {"storageCapacity": False}}
    assert placed(mounts("v"), state, volumes_of([claim("v")], [], [CLASS], [silent], capacities)) == "n"


def test_a_pod_of_one_node_reads_no_other(monkeypatch):
    """Each new node gets a pod of each DaemonSet: to put all nodes into columns again is 10 ms for 5,000."""
    named = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}]}
    state = state_of(node_doc("a"), node_doc("b"), node_doc("c", pods="0"))
    monkeypatch.setattr(ClusterState, "columns", property(lambda _: pytest.fail("all nodes were read")))
    assert placed(pod("p", affinity={"nodeAffinity": {REQUIRED: named}}), state) == "b"


def test_a_pod_that_asks_for_more_than_any_number_stops_no_decision():
    """A node that no kubelet looks after keeps what is bound to it."""
    state = state_of(node_doc("n"), node_doc("m"), pods={"n": [pod("huge", memory="1e999", cpu="1e400")]})
    assert choices(pod("p", cpu="1m"), state) == {"m"}
    assert choices(pod("p", memory="1Mi"), state_of(node_doc("n", cpu="1e999"), node_doc("m", cpu="1e999")))
    full = state_of(node_doc("n"), node_doc("m"), pods={name: [pod(f"huge-{name}", memory="1e999")] for name in "nm"})
    assert choices(pod("p", cpu="1m"), full) == {"n", "m"}


def test_decisions_start_at_different_nodes():
    zones = ("x", "y", "z")
    nodes = (node_doc(f"n{i}", {"topology.kubernetes.io/zone": zones[i * 3 // 300]}) for i in range(300))
    state = state_of(*nodes)
    assert {node.labels["topology.kubernetes.io/zone"] for node in state.columns.nodes[:3]} == {*zones}
    names = [node.name for node in state.columns.nodes]
    for start in (0, 100, 250):
        found = decide(pod("p"), state, volumes_of(), random.Random(start), start=start)
        assert isinstance(found, Placement)
        assert found.seen == 100
        assert (names.index(found.node) - start) % 300 < 100
    state.remove_node("n0")
    assert len(state.columns.nodes) == 299
