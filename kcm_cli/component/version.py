"""The Kubernetes version, and the emulated one.

upstream: staging/src/k8s.io/component-base/compatibility
"""

import platform
import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

import kcm_cli

RELEASE, _, _OWN = kcm_cli.__version__.rpartition(".")
"""The release of Kubernetes whose behaviour kcm has."""
GIT_VERSION = f"v{RELEASE}"
OWN_VERSION = f"{GIT_VERSION}+kcm.{_OWN}"
"""What ``--version`` and kubernetes_build_info say: that release with kcm's own number, as other distributions do."""
_COMMIT = Path(kcm_cli.__file__).with_name("commit.txt")

COMPONENT = "kube"

_parts = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?", re.ASCII)


class Version(msgspec.Struct, frozen=True, order=True):
    """A minor release."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    def previous(self) -> "Version":
        """One minor release earlier."""
        return Version(self.major, self.minor - 1)


def parse_version(text: str) -> Version:
    """``1.33``. Raises ValueError, also for a patch release other than 0."""
    match = _parts.fullmatch(text)
    if match is None:
        raise ValueError(f'"{text}" is not a version such as {BINARY}')
    if int(match[3] or "0"):
        raise ValueError(f"patch version not allowed, got: {text}")
    return Version(int(match[1]), int(match[2]))


def release_of(text: str) -> Version | None:
    """The minor release of a version that a server reports, such as v1.36.2-gke.100."""
    match = _parts.match(text)
    return Version(int(match[1]), int(match[2])) if match is not None else None


BINARY = Version(1, 36)
FLOOR = Version(1, 33)
SERVERS = (BINARY, Version(BINARY.major, BINARY.minor + 1))
"""The API servers that a manager may run with. upstream: https://kubernetes.io/releases/version-skew-policy/"""
TESTED = "v1.36.2"
"""The kube-apiserver that the tests run with."""


class EffectiveVersion(msgspec.Struct, frozen=True):
    """The emulated release, and the oldest release of other components in the cluster."""

    emulation: Version = BINARY
    min_compatibility: Version = BINARY.previous()

    def problems(self) -> list[str]:
        """Errors for versions outside of their bounds."""
        found = []
        if not FLOOR <= self.emulation <= BINARY:
            found.append(f"emulation version {self.emulation} is not between [{FLOOR}, {BINARY}]")
        if not FLOOR <= self.min_compatibility <= self.emulation:
            found.append(
                f"minCompatibilityVersion version {self.min_compatibility} is not between [{FLOOR}, {self.emulation}]"
            )
        return found


def effective_version(emulated: Iterable[str], min_compatibility: Iterable[str]) -> EffectiveVersion:
    """From the values of --emulated-version and --min-compatibility-version: ``kube=1.33`` or ``1.33``.

    Raises ValueError for what is no version, another component, or a version given twice.
    """
    wanted = _of_component("emulated-version", emulated)
    emulation = wanted or BINARY
    least = _of_component("min-compatibility-version", min_compatibility) or max(emulation.previous(), FLOOR)
    return EffectiveVersion(emulation, least)


def _of_component(flag: str, texts: Iterable[str]) -> Version | None:
    found: Version | None = None
    for text in texts:
        component, equals, version = text.partition("=")
        if not equals:
            component, version = COMPONENT, text
        if component.strip() != COMPONENT:
            raise ValueError(f"{flag}: component not registered: {component.strip()}")
        try:
            parsed = parse_version(version.strip())
        except ValueError as error:
            raise ValueError(f"{flag}: {error}") from None
        if found is not None:
            raise ValueError(f"{flag}: duplicate version flag, {COMPONENT}={found} and {COMPONENT}={parsed}")
        found = parsed
    return found


def go_platform() -> str:
    """This machine as Go names it: ``linux/amd64``."""
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}/{machine}"


def commit() -> str:
    """The commit that an installed wheel was built from; empty for others, such as a checkout."""
    try:
        return _COMMIT.read_text("ascii").strip()
    except FileNotFoundError:
        return ""


def raw_version() -> str:
    """All that ``--version=raw`` prints, in the form of Go's ``%#v``."""
    fields = {
        "Major": str(BINARY.major),
        "Minor": str(BINARY.minor),
        "EmulationMajor": "",
        "EmulationMinor": "",
        "MinCompatibilityMajor": "",
        "MinCompatibilityMinor": "",
        "GitVersion": OWN_VERSION,
        "GitCommit": commit(),
        "GitTreeState": "",
        "BuildDate": "",
        "GoVersion": f"python{platform.python_version()}",
        "Compiler": platform.python_implementation(),
        "Platform": go_platform(),
    }
    return "version.Info{" + ", ".join(f'{name}:"{value}"' for name, value in fields.items()) + "}"
