"""Claims and volumes: sizes, modes, immutable fields."""

import pytest

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


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"accessModes": []}, ["spec.accessModes: Required value: at least 1 access mode is required"]),
        pytest.param(
            {"accessModes": ["ReadWriteOnce", "ReadWriteOncePod"]},
            ["spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"],
        ),
        pytest.param({"resources": {}}, ["spec.resources[storage]: Required value"]),
        pytest.param(
            {"resources": {"requests": {"storage": "0"}}},
            ['spec.resources[storage]: Invalid value: "0": must be greater than zero'],
        ),
        pytest.param(
            {"volumeMode": "Odd"},
            ['spec.volumeMode: Unsupported value: "Odd": supported values: "Block", "Filesystem"'],
        ),
    ],
    ids=["no-modes", "exclusive-mode", "no-size", "zero", "volume-mode"],
)
def test_claims(spec, expected):
    assert kit.problems(kit.CLAIMS, kit.claim(**spec)) == expected


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


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param({"spec__capacity": None}, ["spec.capacity: Required value"], id="no-capacity"),
        pytest.param({"spec__hostPath": None}, ["spec: Required value: must specify a volume type"], id="no-source"),
        pytest.param(
            {"spec__nfs": {"server": "s", "path": "/p"}},
            ["spec.nfs: Forbidden: may not specify more than 1 volume type"],
            id="two-sources",
        ),
        pytest.param(
            {"spec__hostPath": None, "spec__local": {"path": "/l"}},
            ["spec.nodeAffinity: Required value: Local volume requires node affinity"],
            id="local",
        ),
    ],
)
def test_volumes(change, expected):
    assert kit.problems(kit.VOLUMES, kit.changed(_VOLUME, **change))[:1] == expected
