"""Which events can make which pods schedulable: tables."""

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS as CLAIMS
from kcm_cli.api.storage import PERSISTENT_VOLUMES, STORAGE_CLASSES
from kcm_cli.machinery import codec
from kcm_cli.sandbox.scheduler import hints
from kcm_cli.sandbox.scheduler.devices.views import CLASSES
from kcm_cli.sandbox.storage.views import CSI_NODES, CSI_STORAGE_CAPACITIES
from kcm_cli.sandbox.views import NODES
from tests.unit.sandbox.scheduler.build import node_doc, pod
from tests.unit.sandbox.scheduler.test_decide import ANTI, NEAR, REQUIRED, TAINT, port, spread

FIT, AFFINITY, TAINTS = "NodeResourcesFit", "NodeAffinity", "TaintToleration"
SSD = {"nodeSelector": {"disk": "ssd"}}


OFFERS = {"x.com/gpu": "gpu"}


def asking(resource, cpu="1"):
    return pod("p", containers=[{"name": "c", "resources": {"requests": {"cpu": cpu, resource: "1"}}}])


def node(labels=None, **spec):
    return NODES.decode(codec.encode(node_doc("n", labels, **spec)))


@pytest.mark.parametrize(
    ("plugin", "info", "old", "new", "helps"),
    [
        pytest.param(FIT, pod("p", cpu="4"), None, node(), True, id="big enough"),
        pytest.param(FIT, pod("p", cpu="5"), None, node(), False, id="too small"),
        pytest.param(FIT, pod("p", cpu="5"), node(), node(cpu="6"), True, id="grown"),
        pytest.param(FIT, pod("p", cpu="4"), node(), node(), False, id="as before"),
        pytest.param(FIT, pod("p"), node(pods="1"), node(pods="2"), True, id="room for more pods"),
        pytest.param(AFFINITY, pod("p", **SSD), None, node(), False, id="another disk"),
        pytest.param(AFFINITY, pod("p", **SSD), None, node({"disk": "ssd"}), True, id="the disk"),
        pytest.param(
            AFFINITY, pod("p", **SSD), node({"disk": "ssd"}), node({"disk": "ssd"}), False, id="had it before"
        ),
        pytest.param(TAINTS, pod("p"), node(taints=[TAINT]), node(), True, id="taint gone"),
        pytest.param(TAINTS, pod("p"), None, node(taints=[TAINT]), False, id="tainted"),
        pytest.param("NodeUnschedulable", pod("p"), node(unschedulable=True), node(), True, id="uncordoned"),
        pytest.param("NodePorts", pod("p"), node(), node({"a": "b"}), False, id="labels free no port"),
        pytest.param("NodePorts", pod("p"), None, node(), True, id="a node has free ports"),
        pytest.param(
            "PodTopologySpread", pod("p", topologySpreadConstraints=spread()), None, node(), False, id="no zone"
        ),
        pytest.param(
            "PodTopologySpread",
            pod("p", topologySpreadConstraints=spread()),
            node({"zone": "x"}),
            node({"zone": "y"}),
            True,
            id="another zone",
        ),
        pytest.param("VolumeRestrictions", pod("p"), node(), node({"a": "b"}), False, id="does not look at labels"),
        pytest.param(FIT, pod("p", cpu="9"), node(taints=[TAINT]), node(), True, id="too small but tainted no more"),
        pytest.param(FIT, pod("p", cpu="9"), node(unschedulable=True), node(), True, id="too small but uncordoned"),
        pytest.param(FIT, asking("x.com/gpu"), None, node(), True, id="devices for it"),
        pytest.param(FIT, asking("x.com/gpu"), node(), node({"a": "b"}), True, id="maybe devices now"),
        pytest.param(FIT, asking("x.com/fpga"), None, node(), False, id="no class offers it"),
        pytest.param(FIT, asking("x.com/gpu", cpu="9"), None, node(), False, id="devices, but too small"),
    ],
)
def test_nodes(plugin, info, old, new, helps):
    hint = hints.node_added(new, OFFERS) if old is None else hints.node_changed(old, new, OFFERS)
    assert hint(info, frozenset((plugin,))) is helps
    assert hint(info, frozenset(("Other",))) is False


A, B = pod("a", {"app": "a"}), pod("b", {"app": "b"})
MOUNTING = {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": "d"}}]}
CLAIMING = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "v"}}]}


@pytest.mark.parametrize(
    ("plugin", "info", "other", "came", "deleted"),
    [
        pytest.param("InterPodAffinity", pod("p", affinity=NEAR), A, True, False, id="wanted near"),
        pytest.param("InterPodAffinity", pod("p", affinity=NEAR), B, False, False, id="not meant"),
        pytest.param("InterPodAffinity", pod("p", affinity=ANTI), A, False, True, id="unwanted"),
        pytest.param("InterPodAffinity", A, pod("o", affinity=ANTI), False, True, id="does not want"),
        pytest.param("PodTopologySpread", pod("p", topologySpreadConstraints=spread()), A, True, True, id="counted"),
        pytest.param(
            "PodTopologySpread", pod("p", topologySpreadConstraints=spread()), B, False, False, id="not counted"
        ),
        pytest.param(FIT, pod("p", cpu="1"), B, False, True, id="room"),
        pytest.param("NodePorts", pod("p", containers=port(80)), pod("o", containers=port(80)), False, True, id="port"),
        pytest.param("NodePorts", pod("p", containers=port(80)), B, False, False, id="no port"),
        pytest.param("VolumeRestrictions", pod("p", **CLAIMING), pod("o", **CLAIMING), False, True, id="claim"),
        pytest.param("VolumeRestrictions", pod("p", **MOUNTING), pod("o", **MOUNTING), False, True, id="disk"),
        pytest.param("VolumeRestrictions", pod("p", **MOUNTING), B, False, False, id="no disk"),
        pytest.param("NodeVolumeLimits", pod("p", **CLAIMING), B, False, False, id="no volume"),
        pytest.param(TAINTS, pod("p"), B, False, False, id="taints do not look at pods"),
    ],
)
def test_pods(plugin, info, other, came, deleted):
    plugins = frozenset((plugin,))
    assert hints.pod_added(other, {})(info, plugins) is came
    assert hints.pod_deleted(other, {})(info, plugins) is deleted


TIER = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"tier": "x"}}}
BOTH = {"podAntiAffinity": {REQUIRED: [*ANTI["podAntiAffinity"][REQUIRED], TIER]}}
TIERED = pod("a", {"app": "a", "tier": "x"})


@pytest.mark.parametrize(
    ("plugin", "info", "old", "new", "helps"),
    [
        pytest.param("InterPodAffinity", pod("p", affinity=NEAR), B, A, True, id="wanted near"),
        pytest.param("InterPodAffinity", pod("p", affinity=NEAR), A, B, False, id="wanted near no more"),
        pytest.param("InterPodAffinity", pod("p", affinity=ANTI), A, B, True, id="unwanted no more"),
        pytest.param("InterPodAffinity", pod("p", affinity=ANTI), B, A, False, id="unwanted now"),
        pytest.param("InterPodAffinity", pod("p", affinity=BOTH), A, B, False, id="unwanted by one term only"),
        pytest.param("InterPodAffinity", pod("p", affinity=BOTH), TIERED, A, True, id="unwanted by both terms"),
        pytest.param("PodTopologySpread", pod("p", topologySpreadConstraints=spread()), A, B, True, id="counted"),
        pytest.param("PodTopologySpread", pod("p", topologySpreadConstraints=spread()), B, A, True, id="counted now"),
        pytest.param(
            "PodTopologySpread", pod("p", topologySpreadConstraints=spread()), A, TIERED, False, id="as before"
        ),
        pytest.param(FIT, pod("p", cpu="1"), A, B, False, id="resources do not look at labels"),
    ],
)
def test_labels_of_pods(plugin, info, old, new, helps):
    assert hints.pod_relabelled(old, new, {})(info, frozenset((plugin,))) is helps


HONORING = {**spread()[0], "nodeTaintsPolicy": "Honor"}
TOLERATING = {"tolerations": [{"operator": "Exists"}]}


@pytest.mark.parametrize(
    ("plugin", "old", "new", "helps"),
    [
        pytest.param(FIT, pod("p", cpu="2"), pod("p", cpu="1"), True, id="smaller"),
        pytest.param(FIT, pod("p", {"app": "a"}, cpu="1"), pod("p", cpu="2"), False, id="larger"),
        pytest.param(TAINTS, pod("p"), pod("p", **TOLERATING), True, id="tolerates"),
        pytest.param("NodeUnschedulable", pod("p"), pod("p", **TOLERATING), True, id="tolerates cordoned nodes"),
        pytest.param(TAINTS, pod("p"), pod("p", {"app": "a"}), False, id="taints do not look at labels"),
        pytest.param("InterPodAffinity", pod("p"), pod("p", {"app": "a"}), True, id="other labels"),
        pytest.param(
            "PodTopologySpread",
            pod("p", topologySpreadConstraints=spread()),
            pod("p", {"app": "a"}, topologySpreadConstraints=spread()),
            True,
            id="counts for itself",
        ),
        pytest.param(
            "PodTopologySpread",
            pod("p", topologySpreadConstraints=[HONORING]),
            pod("p", topologySpreadConstraints=[HONORING], **TOLERATING),
            True,
            id="more nodes count",
        ),
    ],
)
def test_the_pod_itself(plugin, old, new, helps):
    assert hints.pod_updated(old, new)(new, frozenset((plugin,))) is helps


BINDING, ZONES, RESTRICTIONS, LIMITS = "VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits"
CLAIMER = pod("p", **CLAIMING)
DELAYED = {"volumeBindingMode": "WaitForFirstConsumer"}
OTHERS_CLAIM = {"metadata": {"name": "v", "namespace": "other"}}


def named(kind, **fields):
    metadata = {"name": "v", "namespace": "default", **fields.pop("metadata", {})}
    return kind.decode(codec.encode({"metadata": metadata, **fields}))


def limited(count):
    return {"spec": {"drivers": [{"name": "x", "allocatable": {"count": count}}]}}


@pytest.mark.parametrize(
    ("hint", "kind", "old", "new", "helped"),
    [
        pytest.param(
            hints.claim_changed, CLAIMS, None, {}, {BINDING, ZONES, RESTRICTIONS, LIMITS}, id="the claim is there"
        ),
        pytest.param(hints.claim_changed, CLAIMS, {}, {}, {BINDING, ZONES}, id="the claim is another than before"),
        pytest.param(hints.claim_changed, CLAIMS, None, {"metadata": {"name": "w"}}, set(), id="another claim"),
        pytest.param(hints.claim_changed, CLAIMS, None, OTHERS_CLAIM, set(), id="of another namespace"),
        pytest.param(hints.volume_changed, PERSISTENT_VOLUMES, None, {}, {BINDING, ZONES}, id="a volume"),
        pytest.param(hints.volume_changed, PERSISTENT_VOLUMES, {}, {}, {BINDING}, id="a volume in the same zone"),
        pytest.param(
            hints.volume_changed,
            PERSISTENT_VOLUMES,
            {},
            {"metadata": {"labels": {"topology.kubernetes.io/zone": "a"}}},
            {BINDING, ZONES},
            id="a volume in another zone",
        ),
        pytest.param(hints.storage_class_changed, STORAGE_CLASSES, None, {}, {BINDING}, id="a class"),
        pytest.param(hints.storage_class_changed, STORAGE_CLASSES, None, DELAYED, {BINDING, ZONES}, id="that waits"),
        pytest.param(hints.storage_class_changed, STORAGE_CLASSES, {}, DELAYED, set(), id="a class as before"),
        pytest.param(
            hints.storage_class_changed,
            STORAGE_CLASSES,
            {"allowedTopologies": [{"matchLabelExpressions": [{"key": "zone", "values": ["a"]}]}]},
            {},
            {BINDING},
            id="a class for other nodes",
        ),
        pytest.param(hints.csi_node_changed, CSI_NODES, None, {}, {BINDING, LIMITS}, id="a node with drivers"),
        pytest.param(hints.csi_node_changed, CSI_NODES, limited(1), limited(2), {LIMITS}, id="more volumes"),
        pytest.param(hints.csi_node_changed, CSI_NODES, limited(2), limited(1), set(), id="fewer volumes"),
        pytest.param(hints.csi_node_changed, CSI_NODES, limited(2), limited(None), set(), id="no limit counts as 0"),
        pytest.param(
            hints.csi_node_changed,
            CSI_NODES,
            {},
            {"metadata": {"annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "x"}}},
            {BINDING},
            id="another plugin is a driver",
        ),
        pytest.param(hints.capacity_changed, CSI_STORAGE_CAPACITIES, None, {}, {BINDING}, id="published"),
        pytest.param(
            hints.capacity_changed,
            CSI_STORAGE_CAPACITIES,
            {"capacity": "1Gi"},
            {"capacity": "1025Mi"},
            {BINDING},
            id="more room",
        ),
        pytest.param(hints.capacity_changed, CSI_STORAGE_CAPACITIES, {}, {"capacity": "0"}, {BINDING}, id="known now"),
        pytest.param(
            hints.capacity_changed,
            CSI_STORAGE_CAPACITIES,
            {"capacity": "1Gi"},
            {"capacity": "9Gi", "maximumVolumeSize": "1024Mi"},
            set(),
            id="more room, in volumes as large as before",
        ),
        pytest.param(hints.capacity_changed, CSI_STORAGE_CAPACITIES, {"capacity": "1Gi"}, {}, set(), id="not known"),
    ],
)
def test_volumes(hint, kind, old, new, helped):
    asks = hint(None if old is None else named(kind, **old), named(kind, **new))
    plugins = (BINDING, ZONES, RESTRICTIONS, LIMITS, FIT)
    assert {plugin for plugin in plugins if asks(CLAIMER, frozenset((plugin,)))} == helped


def test_a_volume_that_is_detached_makes_room_for_claims():
    assert hints.volume_detached()(CLAIMER, frozenset((LIMITS,)))
    assert not hints.volume_detached()(CLAIMER, frozenset((BINDING,)))
    assert not hints.volume_detached()(pod("p"), frozenset((LIMITS,)))


@pytest.mark.parametrize(
    ("resource", "old", "new", "helps"),
    [
        pytest.param("x.com/gpu", None, "x.com/gpu", True, id="offered"),
        pytest.param("x.com/gpu", "", "x.com/gpu", True, id="offered now"),
        pytest.param("x.com/gpu", "x.com/gpu", "x.com/gpu", False, id="as before"),
        pytest.param("x.com/gpu", None, "x.com/nic", False, id="another one"),
        pytest.param("deviceclass.resource.kubernetes.io/c", None, "", True, id="by the name of the class"),
        pytest.param("deviceclass.resource.kubernetes.io/c", "", "", False, id="a class that was there"),
    ],
)
def test_classes(resource, old, new, helps):
    hint = hints.class_changed(None if old is None else device_class(old), device_class(new))
    assert hint(asking(resource), frozenset((FIT,))) is helps
    assert hint(asking(resource), frozenset(("Other",))) is False


def device_class(offered):
    return CLASSES.decode(codec.encode({"metadata": {"name": "c"}, "spec": {"extendedResourceName": offered}}))
