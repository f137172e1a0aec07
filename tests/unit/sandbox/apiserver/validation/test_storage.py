"""Claims and volumes: what can change, and kinds of drivers and attachments."""

from typing import Any

from tests.kit.api import Api
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


async def test_errors_of_drivers_and_attachments_name_the_field_and_the_limit(api: Api) -> None:
    base = "/apis/storage.k8s.io/v1"
    driver: Any = await api.make(f"{base}/csidrivers", {"metadata": {"name": "d.x"}, "spec": {}})
    driver["spec"]["attachRequired"] = False
    answer = await api.put(f"{base}/csidrivers/d.x", driver)
    assert [cause["field"] for cause in answer.causes] == ["spec.attachRequired"]
    spec = {"attacher": "d.x", "nodeName": "n", "source": {"persistentVolumeName": "v"}}
    await api.make(f"{base}/volumeattachments", {"metadata": {"name": "a"}, "spec": spec})
    status = {"attached": False, "attachError": {"message": "x" * 1025}}
    answer = await api.merge(f"{base}/volumeattachments/a/status", {"status": status})
    assert [cause["message"] for cause in answer.causes] == ["Too long: may not be more than 1024 bytes"]


async def test_topologies_that_all_repeat_each_other_have_no_more_errors_than_a_response_can_hold(api: Api) -> None:
    storage_class = {"metadata": {"name": "c"}, "provisioner": "d.x", "allowedTopologies": [{}] * 1000}
    answer = await api.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    assert answer.status == 422 and len(answer.body) < 10_000
    storage_class["allowedTopologies"] = [{}] * 3
    answer = await api.post("/apis/storage.k8s.io/v1/storageclasses", storage_class)
    places = [f"allowedTopologies[{number}].matchLabelExpressions" for number in range(3)]
    assert [cause["field"] for cause in answer.causes] == sorted(places * 3 + places[1:] + places[2:])
