"""The scheduler's view of pods."""

import gc

from kcm_cli.sandbox.scheduler import podinfo
from tests.unit.sandbox.scheduler.build import pod


def test_pods_that_no_node_tells_apart_have_one_shape():
    left, right = (pod(name, cpu="1") for name in ("a", "b"))
    assert left.shape is right.shape
    assert left.size is right.size
    assert pod("c", cpu="2").shape is not left.shape


def test_shapes_are_forgotten_with_their_pods():
    gc.collect()
    before = len(podinfo._keys)
    infos = [pod("a", nodeSelector={"k" * 1000: str(i)}) for i in range(10)]
    assert len(podinfo._keys) > before
    del infos
    gc.collect()
    assert len(podinfo._keys) == before


def test_a_relabelled_pod_has_the_terms_of_its_new_labels():
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["app"]}
    affinity = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    old, new = (pod("p", {"app": app}, cpu="1", affinity=affinity) for app in "ab")
    found = podinfo.relabelled(old, new.pod)
    assert (found.pod, found.affinity, found.key) == (new.pod, new.affinity, new.key)
    assert found.affinity != old.affinity
    assert found.requests is old.requests
