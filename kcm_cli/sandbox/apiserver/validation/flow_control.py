"""FlowSchemas and PriorityLevelConfigurations.

Source: pkg/apis/flowcontrol/validation/validation.go.
"""

import math
from collections.abc import Mapping
from functools import cache

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.security.bootstrap_flows import flow_objects
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata

_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_METHODS = ("ByNamespace", "ByUser")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_PRECEDENCE_MAX, _QUEUES_MAX, _ENTROPY_MAX = 10_000, 10_000_000, 60
_PRESERVE = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
_NAMESPACE = "each member of this list must be '*' or a DNS-1123 label; "


def validate_flow(doc: Tree) -> list[FieldError]:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    found = metadata.validate_meta(meta, False, metadata.subdomain)
    found += _precedence(spec.get("matchingPrecedence", 0), meta.get("name", ""))
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in _METHODS:
        shown = {"Type": method.get("type", "")}
        found.append(errors.not_supported("spec.distinguisherMethod.type", shown, _METHODS))
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    path = "spec.priorityLevelConfiguration.name"
    if level:
        found += errors.invalid_each(path, level, names.dns1123_subdomain(level))
    else:
        found.append(errors.required(path, "must reference a priority level"))
    for index, rule in enumerate(spec.get("rules") or ()):
        found += _rule(rule, f"spec.rules[{index}]")
    return found + _fixed(meta.get("name", ""), "FlowSchema", spec) + _conditions(doc)


def _fixed(name: str, kind: str, spec: Tree) -> list[FieldError]:
    """The server depends on the specs of a few objects."""
    wanted = _mandatory().get((kind, name))
    if wanted is None:
        return []
    but = " except the 'spec.exempt' field" if (kind, name) == ("PriorityLevelConfiguration", "exempt") else ""
    type_ = f"flowcontrol.{kind}Spec"
    if go_print.internal(type_, {**spec, "exempt": wanted["exempt"]} if but else spec) == go_print.internal(
        type_, wanted
    ):
        return []
    detail = f"spec of '{name}'{but} must equal the fixed value"
    return [errors.invalid("spec", go_print.internal(type_, spec), detail)]


@cache
def _mandatory() -> Mapping[tuple[str, str], Tree]:
    objects: list[Tree] = list(flow_objects())
    names = ("exempt", "catch-all")
    return {(o["kind"], o["metadata"]["name"]): o["spec"] for o in objects if o["metadata"]["name"] in names}


def _precedence(value: int, name: str) -> list[FieldError]:
    path = "spec.matchingPrecedence"
    if value <= 0:
        return [errors.invalid(path, value, "must be a positive value")]
    if value > _PRECEDENCE_MAX:
        return [errors.invalid(path, value, f"must not be greater than {_PRECEDENCE_MAX}")]
    if value == 1 and name != "exempt":
        detail = "only the schema named 'exempt' may have matchingPrecedence 1"
        return [errors.invalid(path, value, detail)]
    return []


def validate_flow_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_flow(new)


def validate_status(new: Tree, old: Tree) -> list[FieldError]:
    """The status of either kind."""
    return _conditions(new)


def _conditions(doc: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, condition in enumerate((doc.get("status") or {}).get("conditions") or ()):
        kind, path = condition.get("type", ""), f"status.conditions[{index}].type"
        if kind in seen:
            found.append(errors.duplicate(path, kind))
        seen.add(kind)
        if not kind:
            found.append(errors.required(path))
    return found


def _rule(rule: Tree, path: str) -> list[FieldError]:
    subjects, found = rule.get("subjects") or (), list[FieldError]()
    if not subjects:
        found.append(errors.required(f"{path}.subjects", "subjects must contain at least one value"))
    for index, subject in enumerate(subjects):
        found += _subject(subject, f"{path}.subjects[{index}]")
    if not rule.get("resourceRules") and not rule.get("nonResourceRules"):
        detail = "at least one of resourceRules and nonResourceRules has to be non-empty"
        found.append(errors.required(path, detail))
    for index, item in enumerate(rule.get("resourceRules") or ()):
        found += _resource_rule(item, f"{path}.resourceRules[{index}]")
    for index, item in enumerate(rule.get("nonResourceRules") or ()):
        found += _url_rule(item, f"{path}.nonResourceRules[{index}]")
    return found


def _subject(subject: Tree, path: str) -> list[FieldError]:
    kind = subject.get("kind", "")
    field = _SUBJECTS.get(kind)
    if field is None:
        return [errors.not_supported(f"{path}.kind", kind, tuple(_SUBJECTS))]
    found = _named(kind, field, subject.get(field), f"{path}.{field}")
    for other in ("ServiceAccount", "User", "Group"):
        name = _SUBJECTS[other]
        if other != kind and subject.get(name) is not None:
            detail = f"{name} is forbidden when subject kind is not '{other}'"
            found.append(errors.forbidden(f"{path}.{name}", detail))
    return found


def _named(kind: str, field: str, holder: Tree | None, path: str) -> list[FieldError]:
    if holder is None:
        return [errors.required(path, f"{field} is required when subject kind is '{kind}'")]
    name, found = holder.get("name", ""), list[FieldError]()
    if not name:
        found.append(errors.required(f"{path}.name"))
    if kind != "ServiceAccount":
        return found
    if name and name != "*":
        found += errors.invalid_each(f"{path}.name", name, names.dns1123_subdomain(name))
    namespace = holder.get("namespace", "")
    if not namespace:
        detail = "must specify namespace for service account"
        return [*found, errors.required(f"{path}.namespace", detail)]
    return found + errors.invalid_each(f"{path}.namespace", namespace, names.dns1123_label(namespace))


def _verbs(verbs: list[str], path: str) -> list[FieldError]:
    if not verbs:
        return [errors.required(path, "verbs must contain at least one value")]
    if "*" in verbs:
        return _alone(verbs, "verbs", path)
    return [] if set(verbs) <= set(_VERBS) else [errors.not_supported(path, verbs, _VERBS)]


def _alone(values: list[str], what: str, path: str) -> list[FieldError]:
    if "*" not in values or len(values) == 1:
        return []
    return [errors.invalid(path, values, f"if '*' is present, must not specify other {what}")]


def _resource_rule(rule: Tree, path: str) -> list[FieldError]:
    found = _verbs(rule.get("verbs") or [], f"{path}.verbs")
    for field, one, many in (("apiGroups", "api group", "api groups"), ("resources", "resource", "resources")):
        values, place = rule.get(field) or [], f"{path}.{field}"
        if values:
            found += _alone(values, many, place)
        else:
            found.append(errors.required(place, f"resource rules must supply at least one {one}"))
    namespaces, place = rule.get("namespaces") or [], f"{path}.namespaces"
    if not namespaces and not rule.get("clusterScope"):
        detail = "resource rules that are not cluster scoped must supply at least one namespace"
        return [*found, errors.required(place, detail)]
    if "*" in namespaces:
        return found + _alone(namespaces, "namespaces", place)
    for index, name in enumerate(namespaces):
        details = [f"{_NAMESPACE}{message}" for message in names.dns1123_label(name)]
        found += errors.invalid_each(f"{place}[{index}]", name, details)
    return found


def _url_rule(rule: Tree, path: str) -> list[FieldError]:
    found = _verbs(rule.get("verbs") or [], f"{path}.verbs")
    urls, place = rule.get("nonResourceURLs") or [], f"{path}.nonResourceURLs"
    if not urls:
        return [*found, errors.required(place, "nonResourceURLs must contain at least one value")]
    if "*" in urls:
        return found + _alone(urls, "non-resource URLs", place)
    for index, url in enumerate(urls):
        if problem := _url_problem(url):
            found.append(errors.invalid(f"{place}[{index}]", url, problem))
    return found


def _url_problem(url: str) -> str:
    if not url:
        return "must not be empty"
    if url == "/":
        return ""
    if not url.startswith("/"):
        return "must start with slash"
    if " " in url:
        return "must not contain white-space"
    if "//" in url:
        return "must not contain double slash"
    stars = url.count("*")
    return "wildcard can only do suffix matching" if stars > 1 or (stars and not url.endswith("/*")) else ""


def validate_level(doc: Tree) -> list[FieldError]:
    meta, spec = doc["metadata"], doc.get("spec") or {}
    found = metadata.validate_meta(meta, False, metadata.subdomain)
    if _PRESERVE in (meta.get("annotations") or ()):
        found.append(errors.forbidden("metadata.annotations", f"annotation '{_PRESERVE}' is forbidden"))
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if (meta.get("name") == "exempt") != (kind == "Exempt"):
        detail = "must be 'Exempt' if and only if `name` is 'exempt'"
        found.append(errors.invalid("spec.type", kind, detail))
    if kind == "Exempt":
        if limited is not None:
            found.append(errors.forbidden("spec.limited", "must be nil if the type is not Limited"))
        if exempt is not None:
            found += _shares(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            found.append(errors.forbidden("spec.exempt", "must be nil if the type is Limited"))
        if limited is None:
            found.append(errors.required("spec.limited", "must not be empty when type is Limited"))
        else:
            found += _limited(limited, "spec.limited")
    else:
        found.append(errors.not_supported("spec.type", kind, ("Exempt", "Limited")))
    return found + _fixed(meta.get("name", ""), "PriorityLevelConfiguration", spec) + _conditions(doc)


def validate_level_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_level(new)


def _shares(level: Tree, path: str) -> list[FieldError]:
    shares = level.get("nominalConcurrencyShares")
    found: list[FieldError] = []
    if shares is not None and shares < 0:
        place = f"{path}.nominalConcurrencyShares"
        found.append(errors.invalid(place, shares, "must be a non-negative integer"))
    return found + _lendable(level, path)


def _lendable(level: Tree, path: str) -> list[FieldError]:
    percent = level.get("lendablePercent")
    if percent is None or 0 <= percent <= 100:
        return []
    return [errors.invalid(f"{path}.lendablePercent", percent, "must be between 0 and 100, inclusive")]


def _limited(level: Tree, path: str) -> list[FieldError]:
    shares, response = level.get("nominalConcurrencyShares"), level.get("limitResponse") or {}
    found: list[FieldError] = []
    if shares is not None and shares < 0:
        place = f"{path}.nominalConcurrencyShares"
        found.append(errors.invalid(place, shares, "must be a non-negative integer"))
    found += _response(response, f"{path}.limitResponse") + _lendable(level, path)
    borrowing = level.get("borrowingLimitPercent")
    if borrowing is not None and borrowing < 0:
        detail = "if specified, must be a non-negative integer"
        found.append(errors.invalid(f"{path}.borrowingLimitPercent", borrowing, detail))
    return found


def _response(response: Tree, path: str) -> list[FieldError]:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is None:
            return []
        detail = "must be nil if limited.limitResponse.type is not Limited"
        return [errors.forbidden(f"{path}.queuing", detail)]
    if kind != "Queue":
        return [errors.not_supported(f"{path}.type", kind, ("Queue", "Reject"))]
    if queuing is None:
        detail = "must not be empty if limited.limitResponse.type is Limited"
        return [errors.required(f"{path}.queuing", detail)]
    return _queuing(queuing, f"{path}.queuing")


def _queuing(queuing: Tree, path: str) -> list[FieldError]:
    queues, hand = queuing.get("queues", 0), queuing.get("handSize", 0)
    found: list[FieldError] = []
    for field in ("queueLengthLimit", "queues"):
        if queuing.get(field, 0) <= 0:
            found.append(errors.invalid(f"{path}.{field}", queuing.get(field, 0), "must be positive"))
    if queues > _QUEUES_MAX:
        found.append(errors.invalid(f"{path}.queues", queues, f"must not be greater than {_QUEUES_MAX}"))
    if problem := _hand_problem(queues, hand):
        found.append(errors.invalid(f"{path}.handSize", hand, problem))
    return found


def _hand_problem(queues: int, hand: int) -> str:
    if hand <= 0:
        return "must be positive"
    if hand > queues:
        return f"should not be greater than queues ({queues})"
    if math.ceil(math.log2(queues) * hand) <= _ENTROPY_MAX:
        return ""
    start = f"required entropy bits of deckSize {queues} and handSize {hand}"
    return f"{start} should not be greater than {_ENTROPY_MAX}"
