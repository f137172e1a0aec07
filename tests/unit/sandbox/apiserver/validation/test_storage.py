"""Claims and volumes: what can change."""

from tests.unit.sandbox.apiserver.strategy import kit

_VOLUME = {
    "metadata": {"name": "v", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "hostPath": {"path": "/x"},
        "persistentVolumeReclaimPolicy": "Retain",
    },
}


def test_a_bound_claim_can_grow_but_an_unbound_one_cannot():
    old = kit.stored(kit.CLAIMS, kit.claim())
    bigger = kit.changed(old, spec__resources__requests__storage="2Gi")
    found = kit.update_problems(kit.CLAIMS, old, bigger)
    assert len(found) == 1 and found[0].startswith("spec: Forbidden: spec is immutable after creation except")
    assert '-   "storage": "1Gi"\n+   "storage": "2Gi"\n' in found[0]
    old["status"] = {"phase": "Bound", "capacity": {"storage": "1Gi"}}
    assert kit.update_problems(kit.CLAIMS, old, bigger) == []
    smaller = kit.changed(old, spec__resources__requests__storage="512Mi")
    assert kit.update_problems(kit.CLAIMS, old, smaller) == [
        "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"
    ]


def test_the_source_of_a_volume_is_fixed():
    old = kit.stored(kit.VOLUMES, _VOLUME)
    found = kit.update_problems(kit.VOLUMES, old, kit.changed(old, spec__hostPath__path="/y"))
    assert len(found) == 1 and '-  "Path": "/x",\n+  "Path": "/y",\n' in found[0]
