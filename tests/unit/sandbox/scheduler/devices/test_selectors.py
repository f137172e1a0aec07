"""The variables of expressions about a device."""

import msgspec
import pytest

from kcm_cli.machinery.cel import CelError
from kcm_cli.sandbox.scheduler.devices.selectors import matches, variables_of
from kcm_cli.sandbox.scheduler.devices.views import Device

DEVICE = {
    "name": "d",
    "attributes": {
        "model": {"string": "a"},
        "other.io/count": {"int": 0},
        "fast": {"bool": False},
        "driver": {"version": "1.2.3"},
    },
    "capacity": {"memory": {"value": "2Gi"}},
    "allowMultipleAllocations": True,
}


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ('device.driver == "gpu.x"', True),
        ('device.attributes["gpu.x"].model == "a"', True),
        ('device.attributes["other.io"].count == 0', True),
        ('!device.attributes["gpu.x"].fast', True),
        ('device.attributes["gpu.x"].driver.isGreaterThan(semver("1.2.0"))', True),
        ('device.capacity["gpu.x"].memory.compareTo(quantity("1Gi")) > 0', True),
        ("device.allowMultipleAllocations", True),
        ('has(device.attributes["none"].model)', False),
        ('"none" in device.attributes', False),
        ('"model" in device.attributes["none"]', False),
    ],
)
def test_expressions(expression: str, expected: bool) -> None:
    assert matches(expression, variables_of("gpu.x", msgspec.convert(DEVICE, Device))) is expected


@pytest.mark.parametrize("expression", ['device.attributes["none"].model == "a"', 'device.attributes["gpu.x"].model'])
def test_errors_of_expressions(expression: str) -> None:
    with pytest.raises(CelError):
        matches(expression, variables_of("gpu.x", msgspec.convert(DEVICE, Device)))


def test_an_attribute_of_a_newer_api() -> None:
    with pytest.raises(CelError, match="attribute x: unsupported attribute value"):
        variables_of("gpu.x", msgspec.convert({"attributes": {"x": {"strings": ["a"]}}}, Device))
