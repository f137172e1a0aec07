"""Feature gates in every release that can be emulated, compared with what Go's feature gates answered there."""

import re
from collections.abc import Callable

import pytest

from kcm_cli.component.featuregates import OVERRIDES, Resolved, resolve
from kcm_cli.component.featuregates_table import read_table
from kcm_cli.component.metrics import Registry
from kcm_cli.component.version import FLOOR, EffectiveVersion, Version
from kcm_cli.manager.observability import show_gates

RELEASES = ("1.33", "1.34", "1.35", "1.36")
FEATURE = re.compile(r'^kubernetes_feature_enabled\{name="(\w+)",stage="\w*"\} ([01])$', re.MULTILINE)
Recorded = Callable[[str], dict[str, dict]]


@pytest.fixture
def history(reference: Recorded) -> dict[str, dict]:
    return reference("feature-gates-history.json")


def emulating(release: str) -> EffectiveVersion:
    emulated = Version(1, int(release.removeprefix("1.")))
    return EffectiveVersion(emulated, max(emulated.previous(), FLOOR))


def resolved(release: str, text: str) -> Resolved:
    return resolve([("", setting) for setting in text.split(",") if setting], emulating(release))


def test_the_table_is_the_recorded_history(history: dict[str, dict]) -> None:
    recorded = {
        name: tuple((one["version"], one["default"], one["stage"], one["locked"]) for one in stages)
        for name, stages in history["gates"].items()
    }
    assert recorded == read_table().gates
    assert {name: tuple(needed) for name, needed in history["dependencies"].items()} == read_table().dependencies


def test_every_gate_has_been_recorded(reference: Recorded, history: dict[str, dict]) -> None:
    known = reference("feature-gates.json")
    assert {gate["name"] for gate in known["used"]} | known["all"].keys() == history["gates"].keys()


@pytest.mark.parametrize("release", RELEASES)
def test_every_gate_has_its_value_of_that_release(release: str, history: dict[str, dict]) -> None:
    found = resolved(release, "")
    assert (found.problems, found.warnings) == ((), ())
    gates = {gate.name: gate for gate in found.gates.values() if gate.stage != "PRE-ALPHA"}
    assert {name: [gate.stage, gate.default, gate.locked] for name, gate in gates.items()} == {
        name: [stage, OVERRIDES.get(name, default), locked]
        for name, (stage, default, locked) in history["at"][release].items()
    }
    assert all(gate.enabled is gate.default for gate in found.gates.values())


@pytest.mark.parametrize("release", RELEASES)
def test_every_setting_is_refused_as_recorded(release: str, history: dict[str, dict]) -> None:
    recorded = history["refused"][release]
    settings = {f"{name}={value}" for name in read_table().gates for value in ("true", "false")} | recorded.keys()
    refused = {setting: sorted(found) for setting in settings if (found := resolved(release, setting).problems)}
    assert refused == recorded


@pytest.mark.parametrize("release", RELEASES)
def test_all_gates_of_a_stage_are_set_as_recorded(release: str, history: dict[str, dict]) -> None:
    for setting, switched in history["switched"][release].items():
        gates = resolved(release, setting).gates
        changed = {gate.name for gate in gates.values() if gate.enabled is not gate.default}
        recorded = set(switched)
        if recorded & OVERRIDES.keys():  # on from the start: AllAlpha does not change it
            recorded -= {name for name in OVERRIDES if gates[name].enabled is gates[name].default}
        assert changed == recorded, setting


@pytest.mark.parametrize("release", RELEASES)
def test_the_metric_shows_the_gates_of_that_release(release: str, history: dict[str, dict]) -> None:
    registry = Registry()
    show_gates(registry, resolved(release, "").gates)
    shown = dict(FEATURE.findall(registry.expose().decode()))
    assert shown == {
        name: str(int(OVERRIDES.get(name, default))) for name, (_, default, _) in history["at"][release].items()
    }


def test_alpha_features_in_an_emulated_release_cause_warnings() -> None:
    text = "component has alpha features enabled in emulated version, this is unsupported: "
    found = resolved("1.35", "CSIVolumeHealth=true,CBORServingAndStorage=true,MutablePodResourcesForSuspendedJobs=true")
    names = "CBORServingAndStorage CSIVolumeHealth MutablePodResourcesForSuspendedJobs"
    assert [one for one in found.warnings if text in one] == [f"{text}features=[{names}]"]
    assert not [one for one in resolved("1.36", "CBORServingAndStorage=true").warnings if text in one]
