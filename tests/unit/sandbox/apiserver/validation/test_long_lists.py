"""Lists of tens of thousands of items in a request are checked for duplicates in one pass."""

from collections.abc import Callable
from typing import Any

import pytest

from kcm_cli.sandbox.apiserver.crd.checks import definition
from kcm_cli.sandbox.apiserver.kinds.admissionregistration.admission_policies import validate_variables
from kcm_cli.sandbox.apiserver.kinds.batch.job_policies import validate_failure_policy
from kcm_cli.sandbox.apiserver.kinds.resource.devices import validate_bindings
from kcm_cli.sandbox.apiserver.kinds.storage.storageclass import KIND as STORAGE_CLASS
from kcm_cli.sandbox.apiserver.registry.warning_headers import header_values
from kcm_cli.sandbox.apiserver.strategy.warnings.containers import of_containers
from kcm_cli.sandbox.apiserver.strategy.warnings.volume_paths import overlapping
from kcm_cli.sandbox.apiserver.types import Errors
from kcm_cli.sandbox.apiserver.validation.container_mounts import validate_devices
from kcm_cli.sandbox.apiserver.validation.quantities import validate_container
from kcm_cli.sandbox.apiserver.validation.scheduling import match_label_keys, validate_spreading
from tests.kit.growth import grows_linearly


def exit_codes(codes: list[int]) -> Errors:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "NotIn", "values": codes}}
    return validate_failure_policy({"podFailurePolicy": {"rules": [rule]}}, "p")


def bindings(names: list[int]) -> Errors:
    failures = [f"a.b/f{name}" for name in names]
    return validate_bindings(
        {"bindingConditions": [f"a.b/c{name}" for name in names], "bindingFailureConditions": failures}, "d"
    )


@pytest.mark.parametrize("check", [exit_codes, bindings])
def test_duplicates(check: Callable[[list[int]], Errors]) -> None:
    assert not [error for error in check([0, 1, 2]) if error.type == "FieldValueDuplicate"]
    assert [error.field[-3:] for error in check([0, 1, 0]) if error.type == "FieldValueDuplicate"][:1] == ["[2]"]
    assert grows_linearly(lambda size: lambda: list(check(list(range(size)))), 1000)


def claims(names: list[int]) -> Errors:
    return validate_container({"claims": [{"name": str(name)} for name in names]}, {str(name) for name in names}, "r")


def topologies(names: list[int]) -> Errors:
    terms = [{"matchLabelExpressions": [{"key": "a", "values": [str(name)]}]} for name in names]
    return STORAGE_CLASS.strategy.check({"provisioner": "p", "allowedTopologies": terms}, None)


def spreading(names: list[int]) -> Errors:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    return validate_spreading([{**constraint, "topologyKey": f"k{name}"} for name in names], "t")


def label_keys(names: list[int]) -> Errors:
    keys = {"matchLabelKeys": [f"a{name}" for name in names], "mismatchLabelKeys": [f"b{name}" for name in names]}
    return match_label_keys({**keys, "labelSelector": {}}, "a")


def devices(names: list[int]) -> Errors:
    mounts = [{"name": f"m{name}", "mountPath": f"/m{name}"} for name in names]
    found = [{"name": f"d{name}", "devicePath": f"/d{name}"} for name in names]
    claim = {"persistentVolumeClaim": {"claimName": "c"}}
    volumes = {f"d{name}": claim for name in names}
    return validate_devices({"volumeMounts": mounts, "volumeDevices": found}, volumes, "d")


def overlaps(names: list[int]) -> list[str]:
    items = [{"path": f"p{name}"} for name in names]
    return overlapping([{"name": "v", "projected": {"sources": [{"configMap": {"name": "c", "items": items}}]}}])


def ports(names: list[int]) -> list[str]:
    found = [{"containerPort": 80, "hostPort": name + 1, "hostIP": f"10.0.{name >> 8}.{name & 255}"} for name in names]
    return of_containers({"containers": [{"name": "c", "ports": found}]}, {}, "")


def variables(names: list[int]) -> Errors:
    return validate_variables({"variables": [{"name": f"v{name}", "expression": "1"} for name in names]})


def versions(names: list[int]) -> Errors:
    schema = {"openAPIV3Schema": {"type": "object"}}
    found = [{"name": f"v{name + 1}", "served": True, "storage": name == 0, "schema": schema} for name in names]
    named = {"group": "a.b", "scope": "Cluster", "names": {"plural": "xs", "kind": "X"}}
    return definition.validate({"metadata": {"name": "xs.a.b"}, "spec": {**named, "versions": found}})


def same_ports(names: list[int]) -> list[str]:
    return header_values(of_containers({"containers": [{"ports": [{"containerPort": 80}] * len(names)}]}, {}, ""))


@pytest.mark.parametrize(
    "check", [claims, topologies, spreading, label_keys, devices, overlaps, ports, same_ports, variables, versions]
)
def test_other_lists(check: Callable[[list[int]], Any]) -> None:
    assert grows_linearly(lambda size: lambda: list(check(list(range(size)))), 500)


@pytest.mark.parametrize(
    ("uses", "found"),
    [
        ([("a", ""), ("a", "")], ['[1]: Duplicate value: "a"']),
        ([("a", ""), ("a", "r")], ['[1]: Duplicate value: "a"']),
        ([("a", "r"), ("a", "s"), ("a", "")], ['[2]: Duplicate value: "a"'] * 2),
        ([("a", "r"), ("a", "r")], ['[1]: Duplicate value: "a/r"']),
        ([("a", "r"), ("b", ""), ("a", "s")], []),
    ],
)
def test_a_claim_is_used_once_or_by_its_requests(uses: list[tuple[str, str]], found: list[str]) -> None:
    claims = [{"name": name, **({"request": request} if request else {})} for name, request in uses]
    assert [f"{error.field}: {error.message}" for error in validate_container({"claims": claims}, "ab", "")] == [
        f".claims{text}" for text in found
    ]


def test_topologies_are_told_once_for_each_one_that_is_the_same() -> None:
    terms = [{}, {"matchLabelExpressions": [{"key": "a", "values": ["b", "c"]}]}]
    terms += [{"matchLabelExpressions": [{"key": "a", "values": ["c", "b"]}]}]
    doc = {"provisioner": "p", "volumeBindingMode": "Immediate", "allowedTopologies": terms}
    found = STORAGE_CLASS.strategy.check(doc, None)
    assert [error.field for error in found] == [
        *["allowedTopologies[0].matchLabelExpressions"] * 3,
        "allowedTopologies[2].matchLabelExpressions",
    ]


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        ([(80, ""), (80, "")], "duplicate"),
        ([(80, "10.0.0.1"), (80, "10.0.0.1")], "duplicate"),
        ([(80, "10.0.0.1"), (80, "10.0.0.2")], ""),
        ([(80, "10.0.0.1"), (80, "")], "dangerously ambiguous"),
        ([(80, ""), (80, "10.0.0.1")], "dangerously ambiguous"),
        ([(80, ""), (81, "")], ""),
        ([(0, ""), (81, "")], "overlapping"),
        ([(81, ""), (0, "")], "overlapping"),
        ([(0, ""), (0, "")], "duplicate"),
    ],
)
def test_ports_of_one_number_clash(ports: list[tuple[int, str]], said: str) -> None:
    found = [{"containerPort": 8080, "hostPort": number, "hostIP": address} for number, address in ports]
    where = "spec.containers[0].ports"
    expected = [f"{where}[1]: {said} port definition with {where}[0]"] if said else []
    assert of_containers({"containers": [{"name": "c", "ports": found}]}, {}, "") == expected


def test_overlapping_paths_are_told_for_the_later_one() -> None:
    places = ("a/b", "ab", "a", "a/b/c", "a/b")
    items = [{"path": place} for place in places]
    found = overlapping([{"name": "v", "secret": {"secretName": "s", "items": items}}])
    assert [text.rpartition(": ")[2] for text in found] == [
        '"a" with "a/b"',
        '"a/b/c" with "a/b"',
        '"a/b/c" with "a"',
        '"a/b" with "a/b"',
        '"a/b" with "a"',
        '"a/b" with "a/b/c"',
    ]
