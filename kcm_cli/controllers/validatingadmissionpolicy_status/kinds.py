"""The kinds that a policy's rules match, against which its expressions are checked.

upstream: apiserver pkg/admission/plugin/policy/validating/typechecking.go#typesToCheck,
apimachinery pkg/api/meta/restmapper.go#KindsFor
"""

from collections.abc import Iterator
from typing import NamedTuple

from kcm_cli.api.admissionregistration import ResourceRule, ValidatingAdmissionPolicy
from kcm_cli.rest.served_resources import Discovery

MOST = 10
"""The maximum number of names that are looked up for one rule."""


class Kind(NamedTuple):
    """A kind. The order is that of warnings."""

    group: str
    version: str
    kind: str

    def __str__(self) -> str:
        return f"{self.group}/{self.version}, Kind={self.kind}"


class Name(NamedTuple):
    """A resource as a rule names it."""

    group: str
    version: str
    resource: str


def names(policy: ValidatingAdmissionPolicy) -> Iterator[list[Name]]:
    """The resources of each rule. A rule with a wildcard for groups or versions has none; subresources are left out."""
    constraints = policy.spec.match_constraints
    for rule in constraints.resource_rules if constraints is not None else ():
        yield _names_of(rule)


def _names_of(rule: ResourceRule) -> list[Name]:
    if any("*" in text for text in (*rule.api_groups, *rule.api_versions)):
        return []
    resources = sorted(name for name in rule.resources if "*" not in name and "/" not in name)
    return [
        Name(group, version, resource)
        for group in sorted(rule.api_groups)
        for version in sorted(rule.api_versions)
        for resource in resources
    ]


def kinds_for(name: Name, served: Discovery) -> list[Kind]:
    """The kinds of a resource, by its plural or singular. An empty group matches all groups."""
    wanted = name.resource.lower()
    return [
        Kind(one.gvr.group, one.gvr.version, one.kind)
        for one in served.all()
        if one.gvr.version == name.version
        and name.group in ("", one.gvr.group)
        and wanted in (one.gvr.plural, one.singular or one.kind.lower())
    ]


def kinds(policy: ValidatingAdmissionPolicy, served: Discovery) -> list[Kind]:
    """All kinds, sorted. Stops at the first rule that reaches the limit of MOST."""
    found: set[Kind] = set()
    for rule in names(policy):
        count = 0
        for name in rule:
            for kind in kinds_for(name, served):
                found.add(kind)
                count += 1
                if count == MOST:
                    return sorted(found)
    return sorted(found)


def unknown(policy: ValidatingAdmissionPolicy, served: Discovery) -> bool:
    """Whether a rule names a resource that is not served, as far as known."""
    return any(not kinds_for(name, served) for rule in names(policy) for name in rule)


def param_kind(policy: ValidatingAdmissionPolicy) -> Kind | None:
    """The kind of a policy's parameters."""
    kind = policy.spec.param_kind
    if kind is None or kind.api_version.count("/") > 1:
        return None
    group, _, version = kind.api_version.rpartition("/")
    return Kind(group, version, kind.kind) if any((group, version, kind.kind)) else None
