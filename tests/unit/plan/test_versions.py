"""Snapshots of servers of 1.30 to 1.36, by what these serve: older versions, kinds that are missing, and later ones."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import codec
from kcm_cli.plan import Options, Scale, Snapshot, Target, load, plan, save
from kcm_cli.plan.twin.loading import Loaded
from kcm_cli.rest.transport import Request, Response
from tests.kit.simulation import NAMESPACE
from tests.unit.plan.test_collect import read, refusing

Tree = dict[str, Any]
SINCE = {
    "resource.k8s.io/v1": 34,
    "resource.k8s.io/v1beta2": 33,
    "resource.k8s.io/v1beta1": 32,
    "networking.k8s.io/v1/ipaddresses": 33,
    "networking.k8s.io/v1/servicecidrs": 33,
    "networking.k8s.io/v1beta1/ipaddresses": 31,
    "networking.k8s.io/v1beta1/servicecidrs": 31,
    "storage.k8s.io/v1/volumeattributesclasses": 34,
    "storage.k8s.io/v1beta1/volumeattributesclasses": 31,
}
"""From which minor release on a group's version, or a resource of one, is served. Before, alpha versions were."""
UNKNOWN = {"later": {"field": [1, None]}}


def serving(minor: int) -> Callable[[Request], Response | None]:
    """A server of that release: what came later is not there, what was older is."""

    def answer(request: Request) -> Response | None:
        parts = request.path.strip("/").split("/")
        if request.path == "/version":
            body = {"major": "1", "minor": str(minor), "gitVersion": f"v1.{minor}.4+vendor.1", "later": True}
            return Response(200, {}, json.dumps(body).encode())
        if parts[0] != "apis" or len(parts) < 4:
            return None
        version, plural = "/".join(parts[1:3]), parts[-1]
        since = SINCE.get(f"{version}/{plural}", SINCE.get(version, 0))
        if since > minor or ("alpha" in version and minor > 33):
            return refusing(plural, status=404)(request)
        if "beta" not in version:
            return None
        metadata: Tree = {"name": "one", "uid": f"{plural}-one", **UNKNOWN}
        if plural in ("resourceclaims", "resourceclaimtemplates"):
            metadata["namespace"] = NAMESPACE
        item = {"metadata": metadata, "spec": {**_SPECS.get(plural, {}), **UNKNOWN}}
        return Response(200, {}, json.dumps({"metadata": {"resourceVersion": "9"}, "items": [item]}).encode())

    return answer


_REQUEST = {"devices": {"requests": [{"name": "gpu", "deviceClassName": "gpu"}]}}
_SPECS: dict[str, Tree] = {
    "servicecidrs": {"cidrs": ["10.0.0.0/24"]},
    "ipaddresses": {"parentRef": {"resource": "services", "name": "kubernetes", "namespace": "default"}},
    "resourceclaims": _REQUEST,
    "resourceclaimtemplates": {"spec": _REQUEST},
    "resourceslices": {"driver": "d", "pool": {"name": "p"}, "devices": [{"name": "d0", "basic": {"attributes": {}}}]},
}
OLDER = {
    30: set(),
    31: {"v1beta1/ipaddresses", "v1beta1/servicecidrs", "v1beta1/volumeattributesclasses"},
    32: {"v1beta1/ipaddresses", "v1beta1/servicecidrs", "v1beta1/volumeattributesclasses", "v1beta1/resourceclaims"},
    33: {"v1beta1/volumeattributesclasses", "v1beta2/resourceclaims"},
    34: set(),
    35: set(),
    36: set(),
}


@cache
def of(minor: int) -> Snapshot:
    return read(serving(minor))[0]


@pytest.mark.parametrize("minor", range(30, 37))
def test_a_snapshot_of_each_release_can_be_planned_on(minor: int, tmp_path: Path) -> None:
    taken = of(minor)
    save(taken, tmp_path / "cluster.kcm")
    snapshot = load(tmp_path / "cluster.kcm")
    assert snapshot.server_version == f"v1.{minor}.4+vendor.1"
    assert replace(snapshot, redacted=False, context=taken.context) == taken
    names = {f"{gvr.version}/{gvr.plural}" for gvr, one in snapshot.collections.items() if one.items}
    assert OLDER[minor] <= names
    assert plan(snapshot, (), Options(horizon_s=30)).nodes
    answer = plan(snapshot, [Scale(Target("deploy", "web", NAMESPACE), 7)], Options(horizon_s=30))
    assert answer.totals.pods_created == 2


@pytest.mark.parametrize(
    ("version", "named"),
    [("v1.35.4+vendor.1", True), ("v1.36.0", False), ("v1.37.1", False), ("v1.38.0-alpha.1", True), ("", False)],
)
def test_a_release_that_the_manager_is_not_for_is_named(version: str, named: bool) -> None:
    answer = plan(replace(of(36), server_version=version), (), Options(horizon_s=1))
    told = [line for line in answer.not_modelled if line.startswith(f"the API server is {version}, and kcm is v1.36")]
    assert bool(told) is named


def test_unknown_fields_are_kept() -> None:
    for gvr in (
        GVR("networking.k8s.io", "v1beta1", "servicecidrs"),
        GVR("resource.k8s.io", "v1beta1", "resourceclaims"),
    ):
        (item,) = of(32).items(gvr)
        assert item.doc["metadata"]["later"] == UNKNOWN["later"]  # type: ignore[index]
        assert item.doc["spec"]["later"] == UNKNOWN["later"]  # type: ignore[index]


def test_kinds_that_a_release_lacks_are_no_gap_and_disable_controllers() -> None:
    old = of(30)
    assert not any(gap.resource.endswith(("resource.k8s.io", "networking.k8s.io")) for gap in old.gaps)
    reasons = "\n".join(plan(old, (), Options(horizon_s=1)).not_modelled)
    assert "resourceclaim-controller" in reasons and "service-cidr-controller" in reasons


def test_devices_of_older_servers_have_the_form_of_later_ones_in_the_twin() -> None:
    docs = {gvr.plural: codec.decode_doc(data) for gvr, _, name, _, data in Loaded(of(32)).rows if name == "one"}
    wanted = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
    assert docs["resourceclaims"]["spec"]["devices"]["requests"] == [wanted]  # type: ignore[index, call-overload]
    assert docs["resourceclaimtemplates"]["spec"]["spec"]["devices"]["requests"] == [wanted]  # type: ignore[index, call-overload]
    assert docs["resourceslices"]["spec"]["devices"] == [{"name": "d0", "attributes": {}}]  # type: ignore[index, call-overload]
    assert docs["resourceslices"]["apiVersion"] == "resource.k8s.io/v1"


def test_kinds_of_a_later_release_are_kept_and_reported(tmp_path: Path) -> None:
    """A file of a kcm that reads more kinds: they are kept, and the answer says that they are not modelled."""
    taken = of(36)
    services = next(one for gvr, one in taken.collections.items() if gvr.plural == "services")
    later = GVR("later.k8s.io", "v1", "things")
    collections = {**taken.collections, later: replace(services, gvr=later, kind="Thing")}
    save(replace(taken, collections=collections), tmp_path / "cluster.kcm")
    snapshot = load(tmp_path / "cluster.kcm")
    assert len(snapshot.items(later)) == len(services.items)
    answer = plan(snapshot, (), Options(horizon_s=1))
    assert any("things.later.k8s.io: a kind that the twin does not serve" in line for line in answer.not_modelled)
