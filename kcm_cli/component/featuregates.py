"""Feature gates: which ones exist, and which are on.

Guarantees: a gate that is unknown, locked, or newer than the emulated release cannot be set. The dependencies of a gate
that is on are on. All problems are returned together.

upstream: staging/src/k8s.io/component-base/featuregate/feature_gate.go
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches

import msgspec

from kcm_cli.component.featuregates_inert import INERT
from kcm_cli.component.featuregates_table import read_table
from kcm_cli.component.flag_values import parse_bool
from kcm_cli.component.version import BINARY, COMPONENT, EffectiveVersion, Version, parse_version

OVERRIDES: Mapping[str, bool] = {"ControllerManagerReleaseLeaderElectionLockOnExit": True}
"""Defaults in which kcm differs: a manager that ends gives its lease back, so that the next one need not wait."""

_WHOLE_STAGES = {"AllAlpha": "ALPHA", "AllBeta": "BETA"}
ABSENT = "PRE-ALPHA"
"""The stage of a gate before the release that brings it."""


class Gate(msgspec.Struct, frozen=True):
    """One gate in the emulated release. stage: ALPHA, BETA, GA, DEPRECATED, or PRE-ALPHA before it exists."""

    name: str
    stage: str
    default: bool
    locked: bool
    enabled: bool


class FeatureGates(Mapping[str, Gate]):
    """All known gates by name; never changes."""

    def __init__(self, gates: Iterable[Gate]) -> None:
        self._gates = {gate.name: gate for gate in gates}

    def enabled(self, name: str) -> bool:
        """Whether a gate is on. Raises KeyError for an unknown gate, which is a programming error."""
        return self._gates[name].enabled

    def __getitem__(self, name: str) -> Gate:
        return self._gates[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._gates)

    def __len__(self) -> int:
        return len(self._gates)


class Resolved(msgspec.Struct, frozen=True):
    """The gates, with errors and warnings for the user."""

    gates: FeatureGates
    problems: tuple[str, ...]
    warnings: tuple[str, ...]


def known_gates() -> list[str]:
    """All names, sorted."""
    return list(read_table().gates)


def foreign(name: str) -> bool:
    """Whether a gate is known to all components, but no controller manager reads it."""
    return name not in read_table().managers and name not in _WHOLE_STAGES


def resolve(settings: Iterable[tuple[str, str]], version: EffectiveVersion | None = None) -> Resolved:
    """The gates from the values of --feature-gates: pairs of component (may be empty) and ``Name=true``."""
    version = version or EffectiveVersion()
    base = {name: _at(name, version.emulation) for name in read_table().gates}
    wanted, problems = _read(settings)
    warnings: list[str] = []
    enabled: dict[str, bool] = {}
    for name, value in wanted.items():
        refused = _refusal(base.get(name), name, value, version)
        if refused:
            problems.append(refused)
            continue
        enabled[name] = value
        if name in INERT and value != base[name].default:
            warnings.append(f"feature gate {name}={_word(value)} has no effect in kcm: {INERT[name]}")
        if base[name].stage in ("GA", "DEPRECATED"):
            kind = base[name].stage if base[name].stage == "GA" else "deprecated"
            warnings.append(
                f"setting {kind} feature gate {name}={_word(value)}. It will be removed in a future release."
            )
    for name, stage in _WHOLE_STAGES.items():
        if name in enabled:
            for gate in base.values():
                if gate.stage == stage and gate.name not in wanted and not gate.locked:
                    enabled[gate.name] = enabled[name]
    gates = FeatureGates(
        Gate(g.name, g.stage, g.default, g.locked, enabled.get(g.name, g.default)) for g in base.values()
    )
    problems += list(_unmet(gates)) if not problems else []
    alpha = sorted(gate.name for gate in gates.values() if gate.stage == "ALPHA" and gate.enabled)
    if alpha and version.emulation < BINARY:
        text = "component has alpha features enabled in emulated version, this is unsupported"
        warnings.append(f"{text}: features=[{' '.join(alpha)}]")
    return Resolved(gates, tuple(problems), tuple(warnings))


def _at(name: str, emulated: Version) -> Gate:
    chosen = None
    for release, default, stage, locked in read_table().gates[name]:
        if parse_version(release) <= emulated:
            chosen = Gate(name, stage, OVERRIDES.get(name, default), locked, False)
    return chosen or Gate(name, ABSENT, False, False, False)


def _read(settings: Iterable[tuple[str, str]]) -> tuple[dict[str, bool], list[str]]:
    wanted: dict[str, bool] = {}
    problems: list[str] = []
    components = set()
    for component, setting in settings:
        components.add(component)
        name, equals, value = (part.strip() for part in setting.partition("="))
        if component not in ("", COMPONENT):
            problems.append(f"feature-gates: component not registered: {component}")
        elif not equals:
            problems.append(f"feature-gates: missing bool value for {name}")
        else:
            try:
                wanted[name] = parse_bool(value)
            except ValueError as error:
                problems.append(f"feature-gates: invalid value of {name}={value}: {error}")
    if components == {"", COMPONENT}:
        problems.append(f"feature-gates: name gates with the prefix {COMPONENT}: or without it, not both")
    return wanted, problems


def _refusal(gate: Gate | None, name: str, value: bool, version: EffectiveVersion) -> str:
    if gate is None:
        near = get_close_matches(name, read_table().gates, n=1)
        hint = f"did you mean {near[0]}?" if near else "kcm --help lists them"
        return f"unrecognized feature gate: {name} ({hint})"
    if gate.locked and gate.default != value:
        return f"cannot set feature gate {name} to {_word(value)}, feature is locked to {_word(gate.default)}"
    if gate.stage == ABSENT:
        return (
            f"cannot set feature gate {name} to {_word(value)}, feature is PreAlpha at emulated version "
            f"{version.emulation}, min compatibility version {version.min_compatibility}"
        )
    return ""


def _unmet(gates: FeatureGates) -> Iterator[str]:
    for name, needed in read_table().dependencies.items():
        off = [need for need in needed if not gates.enabled(need)]
        if off and gates.enabled(name):
            yield f"{name} is enabled, but depends on features that are disabled: [{' '.join(off)}]"


def _word(value: bool) -> str:
    return "true" if value else "false"
