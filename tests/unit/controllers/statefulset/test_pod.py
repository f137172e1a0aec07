from collections.abc import Callable

import pytest

from kcm_cli.controllers.statefulset.plan import pod as rules
from kcm_cli.controllers.statefulset.plan.snapshot import Revision
from tests.kit.growth import grows_linearly
from tests.unit.controllers.statefulset.conftest import DATA, TEMPLATE


def test_a_new_pod_has_its_identity(make_set):
    body = rules.new_pod(make_set(), 2, Revision("db-abc", TEMPLATE))
    assert body["metadata"]["name"] == "db-2"
    assert body["metadata"]["generateName"] == "db-"
    assert body["metadata"]["labels"] == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-2",
        "apps.kubernetes.io/pod-index": "2",
        "controller-revision-hash": "db-abc",
    }
    assert (body["spec"]["hostname"], body["spec"]["subdomain"]) == ("db-2", "svc")
    assert "volumes" not in body["spec"]


@pytest.mark.parametrize("spec", [{}, {"subdomain": "of-the-template"}], ids=["plain", "subdomain"])
def test_no_service_no_subdomain(make_set, spec):
    template = {**TEMPLATE, "spec": {**TEMPLATE["spec"], **spec}}
    assert "subdomain" not in rules.new_pod(make_set(serviceName=None), 0, Revision("r", template))["spec"]


def test_the_template_is_not_touched(make_set):
    before = repr(TEMPLATE)
    rules.new_pod(make_set(volumeClaimTemplates=[DATA]), 0, Revision("r", TEMPLATE))
    assert repr(TEMPLATE) == before


def test_claims_replace_volumes_of_their_name(make_set):
    volumes = [{"name": "other", "emptyDir": {}}, {"name": "data", "emptyDir": {}}]
    assert rules.with_claims(make_set(volumeClaimTemplates=[DATA]), 1, volumes) == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}},
        {"name": "other", "emptyDir": {}},
    ]


@pytest.mark.parametrize(
    ("claims", "expected"), [((), False), (("data-db-1",), False), (("data-db-0",), True)], ids=["none", "other", "own"]
)
def test_volumes_name_the_claims_of_the_ordinal(make_set, make_pod, claims, expected):
    assert rules.storage_matches(make_set(volumeClaimTemplates=[DATA]), make_pod(0, claims=claims)) is expected


@pytest.mark.parametrize(
    ("strategy", "status", "ordinal", "expected"),
    [
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {}, 1, "old"),
        ({"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}, {}, 2, "new"),
        ({"type": "RollingUpdate", "rollingUpdate": {}}, {"currentReplicas": 3}, 0, "new"),
        ({"type": "RollingUpdate"}, {"currentReplicas": 2}, 1, "old"),
        ({"type": "RollingUpdate"}, {"currentReplicas": 2}, 2, "new"),
        ({"type": "OnDelete"}, {"currentReplicas": 3}, 0, "new"),
    ],
)
def test_pods_below_the_partition_are_created_from_the_old_revision(
    make_set, snapshot_of, strategy, status, ordinal, expected
):
    set_ = make_set(status, updateStrategy=strategy)
    assert rules.new_revision(snapshot_of(set_), ordinal).name == expected


def test_the_partition_counts_from_the_first_ordinal(make_set, snapshot_of):
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    set_ = make_set(ordinals={"start": 5}, updateStrategy=strategy)
    assert [rules.new_revision(snapshot_of(set_), ordinal).name for ordinal in (5, 6, 7)] == ["old", "new", "new"]


def test_corrections_keep_unknown_fields(make_set):
    pod = {
        "metadata": {"name": "db-1", "labels": {"x": "y"}, "uid": "u"},
        "spec": {"nodeName": "n", "volumes": [{"name": "token", "projected": {}}]},
        "status": {"phase": "Running"},
    }
    mended = rules.repaired(make_set(volumeClaimTemplates=[DATA]), pod)
    assert mended["metadata"]["labels"] == {
        "x": "y",
        "statefulset.kubernetes.io/pod-name": "db-1",
        "apps.kubernetes.io/pod-index": "1",
    }
    assert [volume["name"] for volume in mended["spec"]["volumes"]] == ["data", "token"]
    assert mended["spec"]["nodeName"] == "n"
    assert mended["status"] == pod["status"]


def test_many_claims_beside_many_volumes_take_linear_time(make_set):
    def prepare(size: int) -> Callable[[], object]:
        set_ = make_set(volumeClaimTemplates=[{"metadata": {"name": f"c{number}"}} for number in range(size)])
        volumes = [{"name": f"v{number}", "emptyDir": {}} for number in range(size)]
        return lambda: rules.with_claims(set_, 0, volumes)

    assert grows_linearly(prepare, 250)
