"""Which level a namespace's labels ask for, in which version of the policies, and what happens to violations.

upstream: staging/src/k8s.io/pod-security-admission/api/helpers.go
"""

import re
from collections.abc import Mapping

import msgspec

from kcm_cli.sandbox.apiserver.types import FieldError
from kcm_cli.sandbox.apiserver.validation.errors import invalid

PREFIX = "pod-security.kubernetes.io/"
PRIVILEGED, BASELINE, RESTRICTED = LEVELS = ("privileged", "baseline", "restricted")
LATEST = 1 << 30
"""The minor version that stands for the newest."""

_version = re.compile(r"v1\.([0-9]|[1-9][0-9]*)").fullmatch


class LevelVersion(msgspec.Struct, frozen=True):
    """A level as a minor version of Kubernetes defined it."""

    level: str = PRIVILEGED
    minor: int = LATEST

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class Policy(msgspec.Struct, frozen=True):
    """What a namespace asks for. The auditing mode has no effect that anybody sees here."""

    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


OPEN = Policy()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """The policy, whatever the labels say, and what is wrong with them."""
    if not any(key.startswith(PREFIX) for key in labels):
        return OPEN, []
    errors: list[FieldError] = []
    enforce = _level(labels, "enforce", RESTRICTED, errors)
    enforce_minor = _minor(labels, "enforce", errors)
    _level(labels, "audit", PRIVILEGED, errors)
    _minor(labels, "audit", errors)
    warn = _level(labels, "warn", PRIVILEGED, errors)
    warn_minor = _minor(labels, "warn", errors)
    enforced = LevelVersion(enforce or PRIVILEGED, LATEST if enforce_minor is None else enforce_minor)
    if warn is None and labels.get(f"{PREFIX}enforce") in (BASELINE, RESTRICTED):
        warn = enforced.level
        warn_minor = enforced.minor if warn_minor is None else warn_minor
    warned = LevelVersion(warn or PRIVILEGED, LATEST if warn_minor is None else warn_minor)
    return Policy(enforced, warned), errors


def _level(labels: Mapping[str, str], mode: str, otherwise: str, errors: list[FieldError]) -> str | None:
    """None where the label is not set; ``otherwise`` where it is wrong."""
    value = labels.get(f"{PREFIX}{mode}")
    if value is None or value in LEVELS:
        return value
    errors.append(_error(mode, value, f"must be one of {', '.join(LEVELS)}"))
    return otherwise


def _minor(labels: Mapping[str, str], mode: str, errors: list[FieldError]) -> int | None:
    value = labels.get(f"{PREFIX}{mode}-version")
    if value is None:
        return None
    if value == "latest":
        return LATEST
    match = _version(value)
    if match is None:
        errors.append(_error(f"{mode}-version", value, 'must be "latest" or "v1.x"'))
        return LATEST
    return int(match[1])


def _error(label: str, value: str, why: str) -> FieldError:
    return invalid(f"metadata.labels[{PREFIX}{label}]", value, why)
