"""Feature gates: valid settings and their effects."""

import pytest

from kcm_cli.component.featuregates import FeatureGates, resolve
from kcm_cli.component.featuregates_table import read_table
from kcm_cli.component.version import EffectiveVersion, Version

LOCKED, BETA, ALPHA = "AuthorizeWithSelectors", "APIServerIdentity", "CBORServingAndStorage"


def gates(*settings: str, version: EffectiveVersion | None = None) -> FeatureGates:
    resolved = resolve([("", setting) for setting in settings], version)
    assert resolved.problems == ()
    return resolved.gates


def test_defaults_have_no_problems() -> None:
    defaults = gates()
    assert defaults.enabled(BETA)
    assert not defaults.enabled(ALPHA)
    assert len(defaults) == len(read_table().gates)


def test_a_gate_can_be_set() -> None:
    assert not gates("ClientsAllowCARotation=false").enabled("ClientsAllowCARotation")
    assert gates(f"{ALPHA}=true").enabled(ALPHA)


def test_the_later_setting_wins() -> None:
    assert gates(f"{ALPHA}=true", f"{ALPHA}=false").enabled(ALPHA) is False


def test_the_lease_is_released_at_the_end_unless_the_gate_is_off() -> None:
    name = "ControllerManagerReleaseLeaderElectionLockOnExit"
    assert gates().enabled(name)
    assert not gates(f"{name}=false").enabled(name)


def test_all_alpha_sets_every_alpha_gate_that_is_not_named() -> None:
    switched = gates("AllAlpha=true", f"{ALPHA}=false")
    assert not switched.enabled(ALPHA)
    assert all(gate.enabled for gate in switched.values() if gate.stage == "ALPHA" and gate.name != ALPHA)


def test_all_beta_off_keeps_locked_gates_and_other_stages() -> None:
    resolved = resolve([("", "AllBeta=false"), ("", f"{BETA}=true")])
    assert resolved.problems == ()
    assert resolved.gates.enabled(BETA)
    assert resolved.gates.enabled(LOCKED)
    assert not resolved.gates.enabled("AtomicFIFO")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param([("", "Nope=true")], "unrecognized feature gate: Nope (kcm --help lists them)", id="unknown"),
        pytest.param(
            [("", "APIServerIdentty=true")],
            "unrecognized feature gate: APIServerIdentty (did you mean APIServerIdentity?)",
            id="near name",
        ),
        pytest.param(
            [("", f"{LOCKED}=false")],
            f"cannot set feature gate {LOCKED} to false, feature is locked to true",
            id="locked",
        ),
        pytest.param([("", BETA)], f"feature-gates: missing bool value for {BETA}", id="no value"),
        pytest.param(
            [("", f"{BETA}=on")],
            f"feature-gates: invalid value of {BETA}=on: must be true or false",
            id="bad value",
        ),
        pytest.param(
            [("wardle", f"{BETA}=true")], "feature-gates: component not registered: wardle", id="other component"
        ),
        pytest.param(
            [("", f"{BETA}=true"), ("kube", f"{ALPHA}=true")],
            "feature-gates: name gates with the prefix kube: or without it, not both",
            id="mixed prefixes",
        ),
        pytest.param(
            [("", "DRADeviceTaintRules=true"), ("", "DRADeviceTaints=false")],
            "DRADeviceTaintRules is enabled, but depends on features that are disabled: [DRADeviceTaints]",
            id="dependency",
        ),
    ],
)
def test_refuses(settings: list[tuple[str, str]], problem: str) -> None:
    assert problem in resolve(settings).problems


def test_a_locked_gate_can_be_set_to_its_value() -> None:
    resolved = resolve([("", f"{LOCKED}=true")])
    assert resolved.problems == ()
    assert resolved.warnings == (f"setting GA feature gate {LOCKED}=true. It will be removed in a future release.",)


def test_the_component_prefix_is_accepted() -> None:
    assert resolve([("kube", f"{ALPHA}=true")]).gates.enabled(ALPHA)


def test_an_earlier_release_has_its_own_defaults() -> None:
    earlier = EffectiveVersion(Version(1, 33), Version(1, 33))
    resolved = resolve([], earlier)
    assert resolved.problems == ()
    assert not resolved.gates.enabled("DynamicResourceAllocation")
    assert resolved.gates["AtomicFIFO"].stage == "PRE-ALPHA"


def test_a_gate_of_a_later_release_cannot_be_set() -> None:
    earlier = EffectiveVersion(Version(1, 35), Version(1, 34))
    assert resolve([("", "AtomicFIFO=true")], earlier).problems == (
        "cannot set feature gate AtomicFIFO to true, feature is PreAlpha at emulated version 1.35, "
        "min compatibility version 1.34",
    )


def test_an_unknown_name_in_code_is_an_error() -> None:
    with pytest.raises(KeyError):
        gates().enabled("Nope")


def test_dependencies_name_known_gates() -> None:
    assert {
        name for pair in read_table().dependencies.items() for name in (pair[0], *pair[1])
    } <= read_table().gates.keys()
