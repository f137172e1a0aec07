"""The release that is emulated."""

import platform

import pytest

from kcm_cli.component.version import BINARY, EffectiveVersion, Version, effective_version, go_platform


@pytest.mark.parametrize(
    ("emulated", "least", "effective"),
    [
        pytest.param([], [], EffectiveVersion(Version(1, 36), Version(1, 35)), id="defaults"),
        pytest.param(["kube=1.35"], [], EffectiveVersion(Version(1, 35), Version(1, 34)), id="follows"),
        pytest.param(["1.33"], [], EffectiveVersion(Version(1, 33), Version(1, 33)), id="not below the floor"),
        pytest.param(["1.36.0"], ["kube=1.36"], EffectiveVersion(BINARY, BINARY), id="both"),
    ],
)
def test_versions(emulated: list[str], least: list[str], effective: EffectiveVersion) -> None:
    assert effective_version(emulated, least) == effective
    assert effective.problems() == []


@pytest.mark.parametrize(
    ("emulated", "problem"),
    [
        pytest.param(["x"], "is not a version", id="no version"),
        pytest.param(["1.35.2"], "patch version not allowed", id="patch"),
        pytest.param(["wardle=1.2"], "component not registered: wardle", id="component"),
        pytest.param(["1.35", "kube=1.34"], "duplicate version flag", id="twice"),
    ],
)
def test_refuses(emulated: list[str], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        effective_version(emulated, [])


def test_versions_out_of_bounds_are_named() -> None:
    assert EffectiveVersion(Version(1, 37), Version(1, 30)).problems() == [
        "emulation version 1.37 is not between [1.33, 1.36]",
        "minCompatibilityVersion version 1.30 is not between [1.33, 1.37]",
    ]


def test_a_machine_is_named_as_go_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    for machine, name in (("x86_64", "amd64"), ("aarch64", "arm64"), ("riscv64", "riscv64")):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert go_platform() == f"linux/{name}"
