"""The policy in a namespace's labels: levels and their versions.

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
"""The minor version of ``latest``."""

_version = re.compile(r"v1\.([0-9]|[1-9][0-9]*)").fullmatch


class LevelVersion(msgspec.Struct, frozen=True):
    """A level, in a minor version of Kubernetes."""

    level: str = PRIVILEGED
    minor: int = LATEST

    @property
    def strictness(self) -> int:
        return LEVELS.index(self.level)

    def __str__(self) -> str:
        return f"{self.level}:{'latest' if self.minor == LATEST else f'v1.{self.minor}'}"


class Policy(msgspec.Struct, frozen=True):
    """The policy of a namespace. There is no audit log, so the audit level is not used."""

    enforce: LevelVersion = LevelVersion()
    warn: LevelVersion = LevelVersion()


OPEN = Policy()


def policy_of(labels: Mapping[str, str]) -> tuple[Policy, list[FieldError]]:
    """The policy, and the errors in the labels."""
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
    """The level; None if the label is not set, ``otherwise`` if it is invalid."""
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
