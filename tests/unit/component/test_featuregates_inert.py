"""Every gate is read by some module, or listed as one without effect."""

import re
from collections.abc import Callable

import pytest

from kcm_cli.component.featuregates import foreign, resolve
from kcm_cli.component.featuregates_inert import INERT
from kcm_cli.component.featuregates_table import read_table
from kcm_cli.component.version import BINARY, FLOOR, EffectiveVersion, Version
from tests.kit.places import ROOT

GATE = re.compile(r'"([A-Z]\w+)"')
STAGES = {"AllAlpha", "AllBeta"}


def read() -> set[str]:
    """The gates that modules of the manager name, other than those that only list them; simulated kubelets name
    gates of real ones."""
    package = ROOT / "kcm_cli"
    found: set[str] = set()
    for path in package.rglob("*.py"):
        if not path.name.startswith("featuregates") and not path.is_relative_to(package / "sandbox"):
            found.update(GATE.findall(path.read_text()))
    return found & read_table().gates.keys()


READ = read()
RELEASES = [EffectiveVersion(Version(1, minor), FLOOR) for minor in range(FLOOR.minor, BINARY.minor + 1)]
SETTABLE = {
    gate.name
    for release in RELEASES
    for gate in resolve((), release).gates.values()
    if not gate.locked and gate.stage != "PRE-ALPHA" and gate.name not in STAGES and not foreign(gate.name)
}


@pytest.mark.parametrize("gate", sorted(SETTABLE))
def test_every_gate_is_read_or_listed_as_without_effect(gate: str) -> None:
    assert (gate in READ) is not (gate in INERT)


def test_gates_of_other_components_are_not_read() -> None:
    assert {name for name in READ if foreign(name)} == {"MutatingAdmissionPolicy"}, "a kind, too"


def test_gates_of_the_manager_are_those_that_upstream_reads(reference: Callable[[str], dict[str, list]]) -> None:
    used = {gate["name"] for gate in reference("feature-gates.json")["used"]}
    assert {name for name in read_table().gates if not foreign(name)} - STAGES == used


@pytest.mark.parametrize(
    ("setting", "warned"),
    [("SELinuxMount=true", True), ("SELinuxMount=false", False), ("PodDeletionCost=false", False)],
)
def test_setting_a_gate_without_effect_warns_with_the_reason(setting: str, warned: bool) -> None:
    text = "feature gate SELinuxMount=true has no effect in kcm: it is about how kubelets mount volumes"
    assert resolve([("", setting)]).warnings == ((text,) if warned else ())
