"""The metrics that controllers declare, compared with upstream's."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator

import pytest

import kcm_cli.controllers
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.metrics import Registry
from kcm_cli.component.metrics.instruments import Description
from kcm_cli.controllers.endpointslice.metrics import SliceMetrics
from kcm_cli.controllers.endpointslice_mirroring.metrics import MirroringMetrics
from kcm_cli.runtime.store import Store

MODULES = [
    f"kcm_cli.controllers.{package.name}.metrics"
    for package in pkgutil.iter_modules(kcm_cli.controllers.__path__)
    if importlib.util.find_spec(f"kcm_cli.controllers.{package.name}.metrics") is not None
]
OTHERS = {"limit": 100, "claims": Store(), "clock": LoopClock(), "cluster_cidr": "10.0.0.0/16"}
"""What the classes take besides the registry."""


def declared(module: str) -> Iterator[Description]:
    """All families that the classes of a module register."""
    registry = Registry()
    before = {family.description.name for family in registry.families()}
    for _, one in inspect.getmembers(importlib.import_module(module), inspect.isclass):
        leading, *others = inspect.signature(one).parameters or [""]
        if one.__module__ == module and leading == "registry":
            one(registry, **{name: OTHERS[name] for name in others})
    for family in registry.families():
        if family.description.name not in before:
            yield family.description


@pytest.mark.parametrize("module", MODULES)
def test_metrics_are_declared_as_upstream(module: str, reference: Callable[[str], list[dict[str, object]]]) -> None:
    facts = {str(fact["name"]): fact for fact in reference("metrics.json")}
    descriptions = list(declared(module))
    assert descriptions
    for description in descriptions:
        fact = facts[description.name]
        assert description.kind == fact["type"]
        assert sorted(description.labels) == fact["labels"]
        assert description.stability.value == fact["stability"]
        if description.kind == "histogram":
            assert list(description.buckets) == pytest.approx([float(bound) for bound in fact["buckets"]])


def test_endpoint_slices_have_metrics_from_the_first_sync() -> None:
    registry = Registry()
    SliceMetrics(registry, 100)
    mirroring = MirroringMetrics(registry, 100)
    assert "endpoint_slice" not in registry.expose().decode()
    mirroring.took(0.5)
    assert "endpoint_slice_mirroring_controller_endpoints_sync_duration_count 1\n" in registry.expose().decode()
