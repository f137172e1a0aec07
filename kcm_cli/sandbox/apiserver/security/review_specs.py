"""Validation of the specs of access reviews.

upstream: pkg/apis/authorization/validation/validation.go, pkg/registry/authorization/util/helpers.go
"""

from collections.abc import Mapping, Sequence

from kcm_cli.machinery import fields, labels
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree, User
from kcm_cli.sandbox.apiserver.validation import rules
from kcm_cli.sandbox.apiserver.validation.errors import invalid, required
from kcm_cli.sandbox.apiserver.validation.labels import VALUES, operator_and_values, validate_key

_RESOURCE, _PATH = "spec.resourceAttributes", "spec.nonResourceAttributes"
_LABEL_OPERATORS = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}


def attributes(spec: Tree) -> list[FieldError]:
    """The errors in the attributes of an access review."""
    return [*_one_request(spec), *_SELECTORS(spec, "spec")]


def _one_request(spec: Tree) -> list[FieldError]:
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if resource is not None and path is not None:
        errors.append(invalid(_PATH, _shown_path(path), "cannot be specified in combination with resourceAttributes"))
    if resource is None and path is None:
        why = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        errors.append(invalid(_RESOURCE, None, why))
    return errors


def subject(spec: Tree) -> list[FieldError]:
    """The errors of a review of another user."""
    errors = _one_request(spec)
    if not (spec.get("user") or spec.get("groups")):
        errors.append(invalid("spec.user", "", "at least one of user or group must be specified"))
    return [*errors, *_SELECTORS(spec, "spec")]


def local(spec: Tree, namespace: str) -> list[FieldError]:
    """The additional errors of a LocalSubjectAccessReview."""
    errors: list[FieldError] = []
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if resource is not None and resource.get("namespace", "") != namespace:
        given = resource.get("namespace", "")
        errors.append(invalid(f"{_RESOURCE}.namespace", given, "must match metadata.namespace"))
    if path is not None:
        errors.append(invalid(_PATH, _shown_path(path), "disallowed on this kind of request"))
    return errors


def metadata(review: Tree, *, local: bool) -> list[FieldError]:
    """The errors in metadata, which must be empty except for the namespace of a local review."""
    given: Tree = {key: value for key, value in (review.get("metadata") or {}).items() if value}
    if not given.keys() - ({"managedFields", "namespace"} if local else {"managedFields"}):
        return []
    return [invalid("metadata", given, "must be empty except for namespace" if local else "must be empty")]


def user_of(spec: Tree) -> User:
    """The user in a review."""
    extra: Mapping[str, Sequence[str]] = spec.get("extra") or {}
    values = {key: tuple(each or ()) for key, each in extra.items()}
    return User(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), values)


def evaluation_error(spec: Tree) -> str:
    """evaluationError: the selectors that cannot be parsed. They do not affect the decision."""
    resource: Tree = spec.get("resourceAttributes") or {}
    notes: list[str] = []
    for word, judge in (("fieldSelector", _understood_fields), ("labelSelector", _understood_labels)):
        selector = resource.get(word)
        if selector is None:
            continue
        good, bad = judge(selector)
        if bad:
            partly = "partially ignored" if good else "ignored"
            notes.append(f"{_RESOURCE}.{word} {partly} due to parse error")
    return "; ".join(notes)


def _shown_path(path: Tree) -> Tree:
    """The attributes with Go's field names."""
    return {"Path": path.get("path", ""), "Verb": path.get("verb", "")}


def _one_form(selector: Tree, path: str) -> Errors:
    raw, requirements = selector.get("rawSelector", ""), selector.get("requirements")
    if raw and requirements:
        yield invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")
    if not raw and not requirements:
        yield required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")


def _selector(*requirement: rules.Field | rules.Rule) -> rules.Rule:
    return rules.fields(_one_form, rules.each("requirements", rules.fields(*requirement)))


_BY_FIELDS = _selector(rules.required("key", detail="must be specified"), operator_and_values())
_BY_LABELS = _selector(operator_and_values(), rules.always("key", validate_key), VALUES)
_SELECTORS = rules.fields(
    rules.optional(
        "resourceAttributes",
        rules.fields(rules.optional("fieldSelector", _BY_FIELDS), rules.optional("labelSelector", _BY_LABELS)),
    )
)


def _understood_fields(selector: Tree) -> tuple[int, int]:
    """The numbers of valid and invalid requirements."""
    requirements = selector.get("requirements") or ()
    if not requirements:
        try:
            return len(fields.parse(selector.get("rawSelector", "")).requirements), 0
        except FormatError:
            return 0, 1
    good = sum(each.get("operator") in ("In", "NotIn") and len(each.get("values") or ()) == 1 for each in requirements)
    return good, len(requirements) - good


def _understood_labels(selector: Tree) -> tuple[int, int]:
    requirements = selector.get("requirements") or ()
    if not requirements:
        try:
            labels.parse(selector.get("rawSelector", ""))
        except FormatError:
            return 0, 1
        return 1, 0
    good = 0
    for each in requirements:
        operator = _LABEL_OPERATORS.get(each.get("operator", ""), "")
        if not operator:
            continue
        try:
            labels.requirement(each.get("key", ""), operator, tuple(each.get("values") or ()))
        except FormatError:
            continue
        good += 1
    return good, len(requirements) - good
