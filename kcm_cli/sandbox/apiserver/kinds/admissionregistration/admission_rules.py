"""What webhooks and admission policies share: rules, selectors, match conditions.

upstream: pkg/apis/admissionregistration/validation/validation.go
"""

from kcm_cli.api.policy_expressions import environment
from kcm_cli.machinery.cel.types import BOOL
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import common
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules

_RULE = "admissionregistration.v1.RuleWithOperations"
FAILURE_POLICIES = rules.choices("admissionregistration.v1.ValidatingWebhook", "failurePolicy")


def alone(what: str) -> rules.Rule:
    """A list that has ``*`` only as its single item."""
    detail = f"if '*' is present, must not specify other {what}"
    return rules.must(lambda values: len(values) < 2 or "*" not in values, detail)


_CONDITIONS_MAX = 64


def _resources(resources: list[str], path: str) -> Errors:
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


validate_rule = rules.fields_of(
    _RULE,
    rules.required("operations", alone("operations"), rules.items(rules.enum(*rules.choices(_RULE, "operations")))),
    rules.required("apiGroups", alone("API groups")),
    rules.required("apiVersions", alone("API versions")),
    rules.each("apiVersions", rules.given()),
    rules.required("resources", _resources),
    rules.maybe_one_of("scope"),
)
"""Operations, groups, versions and resources."""


def validate_conditions(conditions: list[Tree], path: str, *, params: bool = False) -> Errors:
    """Check match conditions: names and expressions."""
    if len(conditions) > _CONDITIONS_MAX:
        yield errors.too_many(path, len(conditions), _CONDITIONS_MAX)
    unique = rules.Unique()
    for index, condition in enumerate(conditions):
        stripped, place = {"expression": condition.get("expression", "").strip()}, f"{path}[{index}]"
        yield from common.validate_expression(stripped, place, [BOOL], environment(params=params))
        if name := condition.get("name"):
            yield from labels.validate_key(name, f"{place}.name")
            yield from unique(name, f"{place}.name")
        else:
            yield errors.required(f"{place}.name")


_NAMED_RULE = rules.fields(rules.each("resourceNames", rules.SEGMENT, key=""), validate_rule)
validate_match = rules.fields(
    rules.present("matchPolicy", rules.enum(*rules.choices("admissionregistration.v1.MatchResources", "matchPolicy"))),
    rules.present("namespaceSelector", labels.validate_selector),
    rules.present("objectSelector", labels.validate_selector),
    rules.each("resourceRules", _NAMED_RULE),
    rules.each("excludeResourceRules", _NAMED_RULE),
)
"""The requests that a policy or a binding matches."""
