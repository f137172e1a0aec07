"""When a job has failed or succeeded, and when its pods are replaced.

Source: pkg/apis/batch/validation/validation.go#validatePodFailurePolicy, #validateSuccessPolicy,
#validateIndexesFormat.
"""

from collections.abc import Collection

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.kinds.batch import common
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, numbers

_ACTIONS = ("Count", "FailIndex", "FailJob", "Ignore")
_STATUSES = ("False", "True", "Unknown")
_RULES_MAX, _CODES_MAX, _PATTERNS_MAX = 20, 255, 20
_INDEXES_MAX_BYTES = 64 * 1024


class IndexesError(Exception):
    """A text is no list of indexes; says why."""


def _choices(values: tuple[str, ...]) -> str:
    return f"valid values: [{' '.join(quote(value) for value in values)}]"


def _choice(value: str, choices: tuple[str, ...], path: str) -> Errors:
    if value in choices:
        return []
    return [errors.not_supported(path, value, choices) if value else errors.required(path, _choices(choices))]


def validate_failure_policy(spec: Tree, path: str) -> Errors:
    """Rules that say what the failure of a pod means."""
    rules = spec["podFailurePolicy"].get("rules") or ()
    if len(rules) > _RULES_MAX:
        yield errors.too_many(f"{path}.rules", len(rules), _RULES_MAX)
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {item.get("name", "") for field in ("containers", "initContainers") for item in pod.get(field) or ()}
    per_index = spec.get("backoffLimitPerIndex") is not None
    for index, rule in enumerate(rules):
        yield from _failure_rule(rule, containers, per_index, f"{path}.rules[{index}]")


def _failure_rule(rule: Tree, containers: Collection[str], per_index: bool, path: str) -> Errors:
    action, codes, patterns = rule.get("action", ""), rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if action == "FailIndex":
        if not per_index:
            yield errors.invalid(f"{path}.action", action, "requires the backoffLimitPerIndex to be set")
    else:
        yield from _choice(action, _ACTIONS, f"{path}.action")
    if codes is not None:
        yield from _exit_codes(codes, containers, f"{path}.onExitCodes")
    if patterns:
        yield from _conditions(patterns, f"{path}.onPodConditions")
    if codes is not None and patterns:
        yield common.unshown(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not patterns:
        yield common.unshown(path, "specifying one of OnExitCodes and OnPodConditions is required")


def _conditions(patterns: list[Tree], path: str) -> Errors:
    if len(patterns) > _PATTERNS_MAX:
        yield errors.too_many(path, len(patterns), _PATTERNS_MAX)
    for index, pattern in enumerate(patterns):
        yield from labels.validate_key(pattern.get("type", ""), f"{path}[{index}].type")
        yield from _choice(pattern.get("status", ""), _STATUSES, f"{path}[{index}].status")


def _exit_codes(codes: Tree, containers: Collection[str], path: str) -> Errors:
    operator, values, name = codes.get("operator", ""), codes.get("values") or [], codes.get("containerName")
    yield from _choice(operator, ("In", "NotIn"), f"{path}.operator")
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield errors.invalid(f"{path}.containerName", name, detail)
    if not values:
        yield errors.invalid(f"{path}.values", codes.get("values"), "at least one value is required")
    elif len(values) > _CODES_MAX:
        yield errors.too_many(f"{path}.values", len(values), _CODES_MAX)
    for index, value in enumerate(values):
        if operator == "In" and value == 0:
            yield errors.invalid(f"{path}.values[{index}]", value, "must not be 0 for the In operator")
        if value in values[:index]:
            yield errors.duplicate(f"{path}.values[{index}]", value)
    if values != sorted(values):
        yield errors.invalid(f"{path}.values", values, "must be ordered")


def validate_replacement(spec: Tree, path: str) -> Errors:
    """When pods are replaced."""
    policy = spec.get("podReplacementPolicy")
    if policy is None:
        return []
    choices = ("Failed",) if spec.get("podFailurePolicy") is not None else ("Failed", "TerminatingOrFailed")
    return [] if policy in choices else [errors.not_supported(path, policy, choices)]


def validate_success_policy(spec: Tree, path: str) -> Errors:
    """Which indexes are enough."""
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = go_print.internal("batch.SuccessPolicy", policy)
        yield errors.invalid(path, shown, "requires indexed completion mode")
        return
    rules = policy.get("rules") or ()
    if not rules:
        detail = "at least one rules must be specified when the successPolicy is specified"
        yield errors.required(f"{path}.rules", detail)
    if len(rules) > _RULES_MAX:
        yield errors.too_many(f"{path}.rules", len(rules), _RULES_MAX)
    for index, rule in enumerate(rules):
        yield from _success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]")


def _success_rule(rule: Tree, completions: int, path: str) -> Errors:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    found: list[FieldError] = []
    total = 0
    if count is None and indexes is None:
        found.append(errors.required(path, "at least one of succeededCount or succeededIndexes must be specified"))
    if indexes is not None:
        if len(indexes.encode()) > _INDEXES_MAX_BYTES:
            found.append(errors.too_long(f"{path}.succeededIndexes", _INDEXES_MAX_BYTES))
        try:
            total = count_indexes(indexes, completions)
        except IndexesError as error:
            detail = f"error parsing succeededIndexes: {error}"
            found.append(errors.invalid(f"{path}.succeededIndexes", indexes, detail))
    if count is None:
        return found
    found += numbers.non_negative(rule, ("succeededCount",), path)
    if count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        found.append(errors.invalid(f"{path}.succeededCount", count, detail))
    if indexes is not None and count > total:
        rest = "(the number of indexes in the specified succeededIndexes field)"
        found.append(errors.invalid(f"{path}.succeededCount", count, f"must be less than or equal to {total} {rest}"))
    return found


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text like ``0,2-4`` names. Raises IndexesError."""
    total, last = 0, -1
    for part in text.split(",") if text else ():
        low, high = index_interval(part, completions)
        if last >= low:
            raise IndexesError(f"non-increasing order, previous: {last}, current: {low}")
        total += high - low + 1
        last = high
    return total


def index_interval(text: str, completions: int) -> tuple[int, int]:
    """First and last of an interval. Raises IndexesError."""
    parts = text.split("-")
    if len(parts) > 2:
        rest = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise IndexesError(f"the fragment {quote(text)} {rest}")
    low = _index(parts[0], completions)
    high = _index(parts[-1], completions)
    if len(parts) > 1 and low >= high:
        raise IndexesError(f"non-increasing order, previous: {low}, current: {high}")
    return low, high


def _index(text: str, completions: int) -> int:
    digits = text.removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()):
        raise IndexesError(f"cannot convert string to integer for index: {quote(text)}")
    if int(digits) >= completions:
        raise IndexesError(f"too large index: {quote(text)}")
    return int(digits)
