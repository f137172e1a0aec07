"""What webhooks and admission policies have in common: rules, selectors, match conditions.

Source: pkg/apis/admissionregistration/validation/validation.go.
"""

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery import names
from kcm_cli.machinery.cel.types import BOOL
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels

OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")
FAILURE_POLICIES = ("Fail", "Ignore")
MATCH_POLICIES = ("Equivalent", "Exact")
_SCOPES = ("*", "Cluster", "Namespaced")
_CONDITIONS_MAX = 64


def validate_rule(rule: Tree, path: str) -> Errors:
    """Operations, groups, versions and resources."""
    operations = rule.get("operations") or []
    if not operations:
        yield errors.required(f"{path}.operations")
    if len(operations) > 1 and "*" in operations:
        yield errors.invalid(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield errors.not_supported(f"{path}.operations[{index}]", operation, OPERATIONS)
    for field, what in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        yield from _exclusive(rule.get(field) or [], what, f"{path}.{field}")
    for index, version in enumerate(rule.get("apiVersions") or ()):
        if not version:
            yield errors.required(f"{path}.apiVersions[{index}]")
    yield from _resources(rule.get("resources") or [], f"{path}.resources")
    scope = rule.get("scope")
    if scope is not None and scope not in _SCOPES:
        yield errors.not_supported(f"{path}.scope", scope, _SCOPES)


def _exclusive(values: list[str], what: str, path: str) -> Errors:
    if not values:
        return [errors.required(path)]
    if len(values) > 1 and "*" in values:
        return [errors.invalid(path, values, f"if '*' is present, must not specify other {what}")]
    return []


def _resources(resources: list[str], path: str) -> Errors:
    if not resources:
        yield errors.required(path)
    whole: set[str] = set()
    everywhere: set[str] = set()
    plain = False
    for index, name in enumerate(resources):
        if not name:
            yield errors.required(f"{path}[{index}]")
            continue
        resource, slash, sub = name.partition("/")
        if not slash:
            plain = name != "*"
            continue
        if resource in whole:
            yield errors.invalid(f"{path}[{index}]", name, f"if '{resource}/*' is present, must not specify {name}")
        if sub in everywhere:
            yield errors.invalid(f"{path}[{index}]", name, f"if '*/{sub}' is present, must not specify {name}")
        if sub == "*":
            whole.add(resource)
        if resource == "*":
            everywhere.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        yield errors.invalid(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        detail = "if '*' is present, must not specify other resources without subresources"
        yield errors.invalid(path, resources, detail)


def validate_conditions(conditions: list[Tree], path: str, *, params: bool = False) -> Errors:
    """Match conditions: expressions with names."""
    if len(conditions) > _CONDITIONS_MAX:
        yield errors.too_many(path, len(conditions), _CONDITIONS_MAX)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        name, text = condition.get("name", ""), condition.get("expression", "").strip()
        place = f"{path}[{index}]"
        if text:
            where = f"{place}.expression"
            yield from common.validate_expression(text, where, [BOOL], environment(params=params))
        else:
            yield errors.required(f"{place}.expression")
        if not name:
            yield errors.required(f"{place}.name")
            continue
        yield from labels.validate_key(name, f"{place}.name")
        if name in seen:
            yield errors.duplicate(f"{place}.name", name)
        seen.add(name)


def validate_match(match: Tree, path: str) -> Errors:
    """Which requests a policy or a binding is about."""
    policy = match.get("matchPolicy")
    if policy is None:
        yield errors.required(f"{path}.matchPolicy")
    elif policy not in MATCH_POLICIES:
        yield errors.not_supported(f"{path}.matchPolicy", policy, MATCH_POLICIES)
    for field in ("namespaceSelector", "objectSelector"):
        selector = match.get(field)
        if selector is None:
            yield errors.required(f"{path}.{field}")
        else:
            yield from labels.validate_selector(selector, f"{path}.{field}")
    for field in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(match.get(field) or ()):
            yield from _named_rule(rule, f"{path}.{field}[{index}]")


def _named_rule(rule: Tree, path: str) -> Errors:
    resource_names = rule.get("resourceNames") or []
    for index, name in enumerate(resource_names):
        place = f"{path}.resourceNames[{index}]"
        yield from errors.invalid_each(place, name, names.path_segment(name))
        if name in resource_names[:index]:
            yield errors.duplicate(place, name)
    yield from validate_rule(rule, path)
