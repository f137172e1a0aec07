"""The allocation that is written."""

from typing import Any

import pytest

from tests.unit.sandbox.scheduler.devices.making import (
    DRIVER,
    allocated,
    claim,
    class_of,
    device,
    first_of,
    slice_of,
    wanted,
)

OPAQUE = {"opaque": {"driver": DRIVER, "parameters": {"a": 1}}}
HERE = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
TERM = {"key": "zone", "operator": "In", "values": ["a"]}
ZONE = {"nodeSelectorTerms": [{"matchExpressions": [TERM]}]}


def one(*args: Any, **kwargs: Any) -> dict[str, Any]:
    found = allocated(*args, **kwargs)
    assert found is not None
    return found[0]


def test_results_have_the_properties_of_requests() -> None:
    slow = device("d", bindingConditions=["Ready"], bindingFailureConditions=["Failed"])
    toleration = {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 5}
    found = one([claim(wanted(adminAccess=True, tolerations=[toleration]))], [slice_of(slow)])
    (result,) = found["devices"]["results"]
    assert result == {
        "request": "r0",
        "driver": DRIVER,
        "pool": "p",
        "device": "d",
        "adminAccess": True,
        "tolerations": [toleration],
        "bindingConditions": ["Ready"],
        "bindingFailureConditions": ["Failed"],
    }


def test_an_alternative_is_named_with_its_request() -> None:
    found = one([claim(first_of(wanted(count=5), wanted()))], [slice_of("d")])
    assert found["devices"]["results"][0]["request"] == "r0/s1"


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param([OPAQUE], [OPAQUE | {"source": "FromClaim"}], id="for all"),
        pytest.param([OPAQUE | {"requests": ["r1"]}], [OPAQUE | {"source": "FromClaim", "requests": ["r1"]}], id="one"),
        pytest.param([OPAQUE | {"requests": ["r0/s0"]}], [], id="an alternative that was not chosen"),
        pytest.param(
            [OPAQUE | {"requests": ["r0/s1"]}],
            [OPAQUE | {"source": "FromClaim", "requests": ["r0/s1"]}],
            id="the alternative that was chosen",
        ),
    ],
)
def test_configurations_of_the_claim(config: Any, expected: Any) -> None:
    asked = claim(first_of(wanted(count=5), wanted()), wanted(), config=config)
    assert one([asked], [slice_of("d", "e")])["devices"].get("config", []) == expected


def test_configurations_of_a_class_are_listed_once() -> None:
    found = one([claim(wanted(), wanted())], [slice_of("d", "e")], class_of("any", config=[OPAQUE]))
    assert found["devices"]["config"] == [OPAQUE | {"source": "FromClass", "requests": ["r0", "r1"]}]


@pytest.mark.parametrize(
    ("slices", "expected"),
    [
        pytest.param([slice_of("d")], HERE, id="local"),
        pytest.param([slice_of("d", allNodes=True)], None, id="anywhere"),
        pytest.param([slice_of("d", nodeSelector=ZONE)], ZONE, id="some nodes"),
        pytest.param([slice_of(device("d", bindsToNode=True), nodeSelector=ZONE)], HERE, id="bound to the node"),
        pytest.param(
            [slice_of(device("d", nodeSelector=ZONE), perDeviceNodeSelection=True)], ZONE, id="by the device's own"
        ),
        pytest.param([slice_of(device("d", nodeName="n1"), perDeviceNodeSelection=True)], HERE, id="by its own node"),
    ],
)
def test_the_nodes_that_reach_the_devices(slices: Any, expected: Any) -> None:
    assert one([claim(wanted())], slices).get("nodeSelector") == expected


def test_node_selectors_of_two_devices_are_joined() -> None:
    more = {"nodeSelectorTerms": [{"matchExpressions": [TERM, {"key": "zone", "operator": "Exists"}]}]}
    slices = [slice_of("d", nodeSelector=ZONE), slice_of("e", pool="q", nodeSelector=more)]
    terms = one([claim(wanted(count=2))], slices)["nodeSelector"]["nodeSelectorTerms"]
    assert terms == [{"matchExpressions": [TERM, {"key": "zone", "operator": "Exists"}]}]
