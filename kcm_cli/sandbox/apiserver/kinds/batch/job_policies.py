"""The policies of Jobs: pod failure policy, success policy, pod replacement policy.

upstream: pkg/apis/batch/validation/validation.go#validatePodFailurePolicy, #validateSuccessPolicy,
#validateIndexesFormat
"""

from collections.abc import Collection

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.kinds.batch import common
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import conditions, errors, go_print, labels, rules


def _choice(name: str, *values: str) -> rules.Field:
    return rules.one_of(name, *values, detail=f"valid values: [{' '.join(quote(value) for value in values)}]")


def validate_failure_policy(spec: Tree, path: str) -> Errors:
    """Check the pod failure policy."""
    listed = spec["podFailurePolicy"].get("rules") or ()
    yield from _FEW(listed, f"{path}.rules")
    pod = (spec.get("template") or {}).get("spec") or {}
    containers = {item.get("name", "") for field in ("containers", "initContainers") for item in pod.get(field) or ()}
    per_index = spec.get("backoffLimitPerIndex") is not None
    for index, rule in enumerate(listed):
        yield from _failure_rule(rule, containers, per_index, f"{path}.rules[{index}]")


def _failure_rule(rule: Tree, containers: Collection[str], per_index: bool, path: str) -> Errors:
    codes, patterns = rule.get("onExitCodes"), rule.get("onPodConditions") or ()
    if rule.get("action") == "FailIndex" and not per_index:
        yield errors.invalid(f"{path}.action", "FailIndex", "requires the backoffLimitPerIndex to be set")
    yield from _ACTION(rule, path)
    if codes is not None:
        yield from _exit_codes(codes, containers, f"{path}.onExitCodes")
    yield from _PATTERNS(rule, path)
    if codes is not None and patterns:
        yield common.unshown(path, "specifying both OnExitCodes and OnPodConditions is not supported")
    elif codes is None and not patterns:
        yield common.unshown(path, "specifying one of OnExitCodes and OnPodConditions is required")


_FEW = rules.max_items(20)
_ACTION = rules.fields(_choice("action", *rules.choices("batch.v1.PodFailurePolicyRule", "action")))
_PATTERN = rules.fields(rules.always("type", labels.validate_key), _choice("status", *conditions.STATUSES))
_PATTERNS = rules.fields(rules.nonempty("onPodConditions", _FEW, rules.items(_PATTERN)))
_OPERATOR = rules.fields(_choice("operator", "In", "NotIn"))


def _exit_codes(codes: Tree, containers: Collection[str], path: str) -> Errors:
    values, name, place = codes.get("values") or [], codes.get("containerName"), f"{path}.values"
    yield from _OPERATOR(codes, path)
    if name is not None and name not in containers:
        detail = "must be one of the container or initContainer names in the pod template"
        yield errors.invalid(f"{path}.containerName", name, detail)
    if values:
        yield from _FEW_CODES(values, place)
    else:
        yield errors.invalid(place, codes.get("values"), "at least one value is required")
    seen: set[int] = set()
    for index, value in enumerate(values):
        if codes.get("operator") == "In" and value == 0:
            yield errors.invalid(f"{place}[{index}]", value, "must not be 0 for the In operator")
        if value in seen:
            yield errors.duplicate(f"{place}[{index}]", value)
        seen.add(value)
    if values != sorted(values):
        yield errors.invalid(place, values, "must be ordered")


_FEW_CODES = rules.max_items(255)


def validate_replacement(spec: Tree, path: str) -> Errors:
    """Check the pod replacement policy."""
    return _REPLACEMENT[spec.get("podFailurePolicy") is not None](spec, path)


_REPLACEMENT = {
    True: rules.fields(rules.maybe_one_of("podReplacementPolicy", "Failed")),
    False: rules.fields_of("batch.v1.JobSpec", rules.maybe_one_of("podReplacementPolicy")),
}


def validate_success_policy(spec: Tree, path: str) -> Errors:
    """Check the success policy."""
    policy = spec["successPolicy"]
    if spec.get("completionMode") != "Indexed":
        shown = go_print.internal("batch.SuccessPolicy", policy)
        yield errors.invalid(path, shown, "requires indexed completion mode")
        return
    yield from _SUCCESS(policy, path)
    for index, rule in enumerate(policy.get("rules") or ()):
        yield from _success_rule(rule, spec.get("completions") or 0, f"{path}.rules[{index}]")


_NO_RULES = "at least one rules must be specified when the successPolicy is specified"
_SUCCESS = rules.fields(rules.required("rules", _FEW, detail=_NO_RULES))
_SUCCEEDED = rules.fields(rules.optional("succeededIndexes", rules.max_bytes(64 * 1024)))
_SUCCEEDED_COUNT = rules.fields(*rules.counters("succeededCount"))


def _success_rule(rule: Tree, completions: int, path: str) -> Errors:
    indexes, count = rule.get("succeededIndexes"), rule.get("succeededCount")
    total = 0
    if count is None and indexes is None:
        yield errors.required(path, "at least one of succeededCount or succeededIndexes must be specified")
    yield from _SUCCEEDED(rule, path)
    try:
        total = count_indexes(indexes or "", completions)
    except IndexesError as error:
        yield errors.invalid(f"{path}.succeededIndexes", indexes, f"error parsing succeededIndexes: {error}")
    yield from _SUCCEEDED_COUNT(rule, path)
    if count is not None and count > completions:
        detail = f"must be less than or equal to {completions} (the number of specified completions)"
        yield errors.invalid(f"{path}.succeededCount", count, detail)
    if count is not None and indexes is not None and count > total:
        rest = "(the number of indexes in the specified succeededIndexes field)"
        yield errors.invalid(f"{path}.succeededCount", count, f"must be less than or equal to {total} {rest}")


class IndexesError(Exception):
    """A text is not a list of indexes. The message says why."""


def count_indexes(text: str, completions: int) -> int:
    """The number of indexes in a text like ``0,2-4``. Raises IndexesError."""
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
