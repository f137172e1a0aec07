"""SELinux labels and policies of mounts, and their conflicts."""

import random

import pytest

from kcm_cli.api.core import PERSISTENT_VOLUME_CLAIMS
from kcm_cli.api.selinux import MOUNTING_PODS
from kcm_cli.api.storage import CSI_DRIVERS, PERSISTENT_VOLUMES
from kcm_cli.controllers.selinux_warning import conflicts, plan
from kcm_cli.controllers.selinux_warning.conflicts import SharedVolumes
from kcm_cli.controllers.selinux_warning.plan import Conflict, Found, SeveralLabels, Unbound, Use, differ
from kcm_cli.machinery import codec

LABEL = ":::s0:c1"
MOUNTS, RECURSES = Use(LABEL, "MountOption"), Use("", "Recursive")


def container(level=None, *mounts, **more):
    context = {"securityContext": {"seLinuxOptions": {"level": level}}} if level is not None else {}
    return {"name": "c", "volumeMounts": [{"name": name, "mountPath": "/m"} for name in mounts], **context, **more}


def pod(*containers, level=None, policy=None, volumes=(), **spec):
    context = {} if level is None else {"seLinuxOptions": {"level": level}}
    if policy is not None:
        context["seLinuxChangePolicy"] = policy
    body = {"containers": list(containers), "securityContext": context, "volumes": list(volumes), **spec}
    return MOUNTING_PODS.decode(codec.encode({"metadata": {"name": "p", "namespace": "d"}, "spec": body}))


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        pytest.param(pod(container(None, "v")), {"v": set()}, id="no label"),
        pytest.param(pod(container(None, "v"), level="s0"), {"v": {":::s0"}}, id="the pod's"),
        pytest.param(pod(container("s1", "v"), level="s0"), {"v": {":::s1"}}, id="the container's own"),
        pytest.param(pod(container("", "v")), {"v": {""}}, id="empty options"),
        pytest.param(pod(container("s0", "v"), container("s0", "v", "w")), {"v": {":::s0"}, "w": {":::s0"}}, id="one"),
        pytest.param(pod(container("s0", "v"), container("s1", "v")), {"v": {":::s0", ":::s1"}}, id="two"),
        pytest.param(
            pod(container(), initContainers=[container("s0", "v")], ephemeralContainers=[container("s1", "v")]),
            {"v": {":::s0", ":::s1"}},
            id="of other kinds",
        ),
    ],
)
def test_labels_of_mounts(user, expected):
    assert plan.labels_of(user) == expected


def test_all_components_of_a_label_are_compared():
    options = {"user": "u", "role": "r", "type": "t", "level": "s0:c1,c2"}
    user = pod({"name": "c", "volumeMounts": [{"name": "v"}], "securityContext": {"seLinuxOptions": options}})
    assert plan.labels_of(user) == {"v": {"u:r:t:s0:c1,c2"}}


@pytest.mark.parametrize(
    ("policy", "labels", "supported", "expected"),
    [
        (None, {LABEL}, True, MOUNTS),
        ("MountOption", {LABEL}, True, MOUNTS),
        ("Recursive", {LABEL}, True, RECURSES),
        (None, {LABEL}, False, RECURSES),
        (None, set(), True, RECURSES),
        (None, {""}, True, RECURSES),
    ],
)
def test_how_a_volume_is_mounted(policy, labels, supported, expected):
    assert plan.use_of(pod(policy=policy), labels, supported) == expected


def test_two_labels_in_a_pod_are_an_error():
    with pytest.raises(SeveralLabels, match="multiple SELinux labels found: a,b"):
        plan.use_of(pod(), {"b", "a"}, False)


# -- volumes


def found(source, bound=None, phase="Bound"):
    metadata = {"name": "c", "namespace": "d", "uid": "u"}
    doc = {"metadata": metadata, "spec": {"volumeName": "v"}, "status": {"phase": phase}}
    claim = PERSISTENT_VOLUME_CLAIMS.decode(codec.encode(doc))
    spec = {"claimRef": {"uid": "u"}, **(bound or {})}
    volume = PERSISTENT_VOLUMES.decode(codec.encode({"metadata": {"name": "v"}, "spec": spec}))
    user = pod(volumes=[{"name": "data", **source}])
    return plan.read(user, user.spec.volumes[0], {"d/c": claim}.get, {"v": volume}.get)


CLAIMED = {"persistentVolumeClaim": {"claimName": "c"}}


@pytest.mark.parametrize(
    ("source", "bound", "expected"),
    [
        ({"emptyDir": {}}, None, None),
        ({"csi": {"driver": "d"}}, None, None),
        ({"hostPath": {"path": "/x"}}, None, Found("kubernetes.io/host-path//x", "kubernetes.io/host-path")),
        ({"nfs": {"server": "s", "path": "/p"}}, None, Found("kubernetes.io/nfs/s//p", "kubernetes.io/nfs")),
        ({"fc": {"wwids": ["w"]}}, None, Found("kubernetes.io/fc/[w]", "kubernetes.io/fc")),
        (
            {"cinder": {"volumeID": "c"}},
            None,
            Found("kubernetes.io/csi/cinder.csi.openstack.org^c", "kubernetes.io/csi", "cinder.csi.openstack.org"),
        ),
        (CLAIMED, {"nfs": {"server": "s", "path": "/p"}}, Found("kubernetes.io/nfs/s//p", "kubernetes.io/nfs")),
        (
            CLAIMED,
            {"csi": {"driver": "d", "volumeHandle": "h"}},
            Found("kubernetes.io/csi/d^h", "kubernetes.io/csi", "d"),
        ),
        (CLAIMED, {"local": {"path": "/x"}}, None),
    ],
)
def test_persistent_volume_of_a_volume(source, bound, expected):
    assert found(source, bound) == expected


def test_an_unbound_claim_has_no_volume():
    with pytest.raises(Unbound):
        found(CLAIMED, phase="Pending")


@pytest.mark.parametrize(
    ("volume", "said", "expected"),
    [
        (None, None, False),
        (Found("n", "kubernetes.io/nfs"), None, False),
        (Found("n", "kubernetes.io/iscsi"), None, True),
        (Found("n", "kubernetes.io/csi", "d"), "unknown", False),
        (Found("n", "kubernetes.io/csi", "d"), None, False),
        (Found("n", "kubernetes.io/csi", "d"), True, True),
    ],
)
def test_volumes_mounted_with_labels(volume, said, expected):
    driver = CSI_DRIVERS.decode(codec.encode({"spec": {"seLinuxMount": said}})) if said != "unknown" else None
    assert plan.mounts_with_labels(volume, driver) is expected


# -- conflicts


@pytest.mark.parametrize(
    ("label", "other", "expected"),
    [
        ("u:r:t:s0", "u:r:t:s0", False),
        ("u:r:t:s0", ":::s0", False),
        ("u:r:t:s0", "v:r:t:s0", True),
        (":::s0", ":::s1", True),
        ("", ":::s0", True),
        ("", "u:r:t:", False),
        ("", "", False),
    ],
)
def test_different_labels(label, other, expected):
    assert differ(label, other) is expected
    assert differ(other, label) is expected


def test_conflicts_are_added_and_removed():
    active = set()
    shared = SharedVolumes(lambda conflict, on: active.add(conflict) if on else active.discard(conflict))
    assert shared.add("v", "drv", "d/a", MOUNTS) == []
    assert shared.add("v", "drv", "d/a", MOUNTS) == []
    warnings = shared.add("v", "drv", "d/b", Use(":::s9", "MountOption"))
    assert warnings == [
        Conflict("SELinuxLabel", "d/b", ":::s9", "d/a", LABEL),
        Conflict("SELinuxLabel", "d/a", LABEL, "d/b", ":::s9"),
    ]
    assert active == set(warnings)
    assert shared.pods_of_driver("drv") == {"d/a", "d/b"}
    shared.add("w", "drv", "d/a", MOUNTS)
    assert len(shared.add("w", "drv", "d/b", Use(":::s9", "MountOption"))) == 2
    assert shared.add("v", "drv", "d/b", MOUNTS) == []
    assert active == set(warnings)  # the other volume is shared still
    shared.remove("d/b")
    shared.remove("d/b")
    assert (active, shared.pods_of_driver("drv")) == (set(), {"d/a"})


USES = [MOUNTS, RECURSES, Use(":::s9", "MountOption"), Use("u:r:t:s0", "MountOption")]


@pytest.mark.parametrize("seed", range(50))
def test_conflicts_are_those_of_all_pairs_after_any_changes(seed):
    """The groups of pods with one use, and the conflicts by pod, against a comparison of each pod with each."""
    rng, active, uses = random.Random(seed), set(), {}
    shared = SharedVolumes(lambda conflict, on: active.add(conflict) if on else active.remove(conflict))
    for _ in range(40):
        pod = f"d/{rng.randrange(6)}"
        if rng.random() < 0.3:
            shared.remove(pod)
            uses = {place: use for place, use in uses.items() if place[1] != pod}
        else:
            place = rng.choice("vw"), pod
            uses[place] = rng.choice(USES)
            shared.add(place[0], "", pod, uses[place])
        pairs = [(one, other) for one in uses for other in uses if one[0] == other[0] and one < other]
        assert active == {
            conflict for one, other in pairs for conflict in plan.plan(one[1], uses[one], other[1], uses[other])
        }
    for number in range(6):
        shared.remove(f"d/{number}")
    assert (active, shared._volumes, shared._of_pod) == (set(), {}, {})


@pytest.mark.parametrize("pods", [200, 400])
def test_pods_with_the_same_use_are_not_compared(monkeypatch, pods):
    compared = []
    monkeypatch.setattr(conflicts, "plan", lambda *args: compared.append(args) or plan.plan(*args))
    shared = SharedVolumes(lambda conflict, on: None)
    for number in range(pods):
        shared.add("v", "", f"d/{number}", MOUNTS)
    assert len(compared) <= pods


def test_conflicts_are_limited(monkeypatch):
    """1,000 pods of each use would have 1,000,000."""
    monkeypatch.setattr(conflicts, "MOST", 50)
    active = set()
    shared = SharedVolumes(lambda conflict, on: active.add(conflict) if on else active.remove(conflict))
    found = [shared.add("v", "", f"d/{number}", USES[number % 2]) for number in range(100)]
    assert (len(active), sum(map(len, found))) == (50, 50)
    for number in range(100):
        shared.remove(f"d/{number}")
    assert active == set()
    shared.add("v", "", "d/a", USES[0])
    assert shared.add("v", "", "d/b", USES[1])


def test_a_policy_and_a_label_are_two_conflicts():
    shared = SharedVolumes(lambda conflict, on: None)
    shared.add("v", "", "d/a", MOUNTS)
    assert [conflict.what for conflict in shared.add("v", "", "d/b", RECURSES)] == [
        "SELinuxChangePolicy",
        "SELinuxChangePolicy",
        "SELinuxLabel",
        "SELinuxLabel",
    ]


def test_messages_name_pods_of_the_own_namespace_only():
    same = Conflict("SELinuxLabel", "d/a", "x", "d/b", "y")
    assert same.message() == (
        'SELinuxLabel "x" conflicts with pod b that uses the same volume as this pod with SELinuxLabel "y". '
        "If both pods land on the same node, only one of them may access the volume."
    )
    assert Conflict("SELinuxLabel", "d/a", "x", "e/b", "y").message() == (
        'SELinuxLabel"x" conflicts with another pod that uses the same volume as this pod with a different '
        "SELinuxLabel. If both pods land on the same node, only one of them may access the volume."
    )
