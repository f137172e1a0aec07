"""Scopes of quotas: those that an object is in, and those that a quota requires.

upstream: pkg/quota/v1/evaluator/core/pods.go#podMatchesScopeFunc, persistent_volume_claims.go#pvcMatchesScopeFunc
"""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from kcm_cli.api.core import ResourceQuota

PRIORITY_CLASS = "PriorityClass"
ATTRIBUTES_CLASS = "VolumeAttributesClass"
_BY_VALUE = frozenset({PRIORITY_CLASS, ATTRIBUTES_CLASS})

Profile = frozenset[tuple[str, str]]
"""The scopes that an object is in, each with its value; empty for scopes that have none."""
NOWHERE: Profile = frozenset()


class Requirement(NamedTuple):
    """One condition of a quota's scopes or scope selector."""

    scope: str
    operator: str = "Exists"
    values: tuple[str, ...] = ()


def requirements(quota: ResourceQuota) -> tuple[Requirement, ...]:
    """The requirements of a quota. An object must meet all of them to be charged."""
    selector = quota.spec.scope_selector
    terms = selector.match_expressions if selector is not None else ()
    return (
        *(Requirement(scope) for scope in quota.spec.scopes),
        *(Requirement(term.scope_name, term.operator, term.values) for term in terms),
    )


def matches(profile: Profile, asked: Iterable[Requirement], known: Collection[str]) -> bool:
    """Whether an object meets all requirements. ``known``: the scopes that its kind can be in; it meets no other."""
    return all(each.scope in known and _meets(profile, each) for each in asked)


def _meets(profile: Profile, asked: Requirement) -> bool:
    values = [value for scope, value in profile if scope == asked.scope]
    if asked.scope not in _BY_VALUE:
        return bool(values)
    match asked.operator:
        case "Exists":
            return bool(values)
        case "DoesNotExist":
            return not values
        case "In":
            return any(value in asked.values for value in values)
        case "NotIn":
            return not values or any(value not in asked.values for value in values)
    return False
