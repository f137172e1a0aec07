"""The scheduling constraints of pods: node selectors, affinity, tolerations, topology spread, gates.

upstream: pkg/apis/core/validation/validation.go#validateAffinity, #ValidateTolerations,
#validateTopologySpreadConstraints
"""

from functools import cache

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules
from kcm_cli.sandbox.apiserver.validation.quantities import NOT_POSITIVE

TAINT_EFFECT = rules.enum("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_ANY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_BAD_OPERATOR = "not a valid selector operator"
_ONE_VALUE = "must be specified single value when `operator` is 'Lt' or 'Gt'"
_WEIGHT = rules.always("weight", rules.between(1, 100, "must be in the range 1-100"), default=0)


def _field_operator(item: Tree, path: str) -> Errors:
    operator = item.get("operator", "")
    if operator not in ("In", "NotIn"):
        yield errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    elif len(item.get("values") or ()) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield errors.required(f"{path}.values", detail)


def _field_name(item: Tree, path: str) -> Errors:
    key = item.get("key", "")
    if key != "metadata.name":
        return [errors.invalid(f"{path}.key", key, "not a valid field selector key")]
    return _NODE_NAMES(item, path)


_NODE_NAMES = rules.fields(rules.each("values", rules.SUBDOMAIN))


def _node_term(lenient: bool) -> rules.Rule:
    expression = rules.fields(
        labels.operator_and_values(_BAD_OPERATOR, Gt=_ONE_VALUE, Lt=_ONE_VALUE),
        rules.always("key", labels.validate_key),
        *(() if lenient else (labels.VALUES,)),
    )
    return rules.fields(
        rules.each("matchExpressions", expression),
        rules.each("matchFields", rules.fields(_field_operator, _field_name)),
    )


@cache
def node_selector(lenient: bool) -> rules.Rule:
    """The rule for the terms of a node selector. ``lenient``: the old object has values that are invalid for labels."""
    detail = "must have at least one node selector term"
    return rules.fields(rules.required("nodeSelectorTerms", rules.items(_node_term(lenient)), detail=detail))


validate_node_selector = node_selector(False)


def _namespaces(values: list[str], path: str) -> Errors:
    # upstream: pkg/apis/core/validation/validation.go#validatePodAffinityTerm (writes the path in the singular)
    for name in values:
        yield from errors.invalid_each(path, name, names.dns1123_label(name))


def match_label_keys(term: Tree, path: str) -> Errors:
    """Check ``matchLabelKeys`` and ``mismatchLabelKeys``, which have been merged into the selector."""
    keys, mismatched = term.get("matchLabelKeys") or (), set(term.get("mismatchLabelKeys") or ())
    if not keys and not mismatched:
        return
    selector = term.get("labelSelector")
    yield from (_LABEL_KEYS if selector is not None else _NO_LABEL_KEYS)(term, path)
    places = {key: index for index, key in enumerate(keys)}
    seen = set((selector or {}).get("matchLabels") or ())
    for item in (selector or {}).get("matchExpressions") or ():
        key = item.get("key", "")
        if key in places and key in seen:
            yield errors.invalid(f"{path}[{places[key]}]", key, "exists in both matchLabelKeys and labelSelector")
        seen.add(key)
    for index, key in enumerate(keys):
        if key in mismatched:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            yield errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


_KEYS, _NO_SELECTOR = rules.items(labels.validate_key), "must not be specified when labelSelector is not set"
_LABEL_KEYS = rules.fields(rules.optional("matchLabelKeys", _KEYS), rules.optional("mismatchLabelKeys", _KEYS))
_NO_LABEL_KEYS = rules.fields(
    rules.forbidden("matchLabelKeys", _NO_SELECTOR), rules.forbidden("mismatchLabelKeys", _NO_SELECTOR)
)

_NODES = rules.fields(
    rules.optional(_REQUIRED, validate_node_selector),
    rules.each(_PREFERRED, rules.fields(_WEIGHT, rules.optional("preference", _node_term(True)))),
)
_TERM = rules.fields(
    rules.optional("labelSelector", labels.validate_selector),
    rules.optional("namespaceSelector", labels.validate_selector),
    rules.optional("namespaces", _namespaces, at="namespace"),
    match_label_keys,
    rules.required("topologyKey", detail="can not be empty"),
    rules.always("topologyKey", labels.validate_key),
)
_PODS = rules.fields(
    rules.each(_REQUIRED, _TERM),
    rules.each(_PREFERRED, rules.fields(_WEIGHT, rules.always("podAffinityTerm", _TERM, default={}))),
)
validate_affinity = rules.fields(
    rules.optional("nodeAffinity", _NODES),
    rules.optional("podAffinity", _PODS),
    rules.optional("podAntiAffinity", _PODS),
)
"""Node and pod affinity."""


def validate_tolerations(tolerations: list[Tree], path: str) -> Errors:
    """Check tolerations."""
    for index, item in enumerate(tolerations):
        operator, effect = item.get("operator"), item.get("effect")
        if operator == "Exists" and effect == "NoExecute" and "value" not in item:
            key = item.get("key", "")
            if not key or not labels.key_messages(key):
                continue
        yield from _TOLERATION(item, f"{path}[{index}]")


def without_seconds(toleration: Tree) -> frozenset[tuple[str, object]]:
    """The fields of a toleration without its time."""
    return frozenset((key, value) for key, value in toleration.items() if key != "tolerationSeconds")


def _toleration(item: Tree, path: str) -> Errors:
    operator, toleration = item.get("operator", ""), item.get("value", "")
    effect = item.get("effect", "")
    if not item.get("key") and operator != "Exists":
        yield errors.invalid(f"{path}.operator", operator, _ANY_KEY)
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield errors.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("Equal", ""):
        if messages := labels.value_messages(toleration):
            yield errors.invalid(f"{path}.operator", toleration, ";".join(messages))
    elif operator == "Exists":
        if toleration:
            yield errors.invalid(f"{path}.operator", toleration, "value must be empty when `operator` is 'Exists'")
    else:
        known = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
        yield errors.not_supported(f"{path}.operator", operator, known)


_TOLERATION = rules.fields(
    rules.nonempty("key", labels.validate_key), _toleration, rules.nonempty("effect", TAINT_EFFECT)
)


def validate_spreading(constraints: list[Tree], path: str) -> Errors:
    """Check topology spread constraints."""
    pairs = [(item.get("topologyKey", ""), item.get("whenUnsatisfiable", "")) for item in constraints]
    last = {pair: index for index, pair in enumerate(pairs)}
    for index, item in enumerate(constraints):
        place = f"{path}[{index}]"
        yield from _CONSTRAINT(item, place)
        if last[pairs[index]] > index:
            shown = f"{{{', '.join(pairs[index])}}}"
            yield errors.duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", shown)
        yield from _OPTIONS(item, place)


def _domains(item: Tree, path: str) -> Errors:
    domains, action = item.get("minDomains"), item.get("whenUnsatisfiable", "")
    if domains is not None and action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        yield errors.invalid(f"{path}.minDomains", domains, detail)


_SPREAD = "core.v1.TopologySpreadConstraint"
_CONSTRAINT = rules.fields_of(
    _SPREAD,
    rules.always("maxSkew", rules.at_least(1, NOT_POSITIVE), default=0),
    rules.required("topologyKey", detail="can not be empty"),
    rules.always("whenUnsatisfiable", rules.enum(*rules.choices(_SPREAD, "whenUnsatisfiable"))),
)
_OPTIONS = rules.fields_of(
    _SPREAD,
    rules.optional("minDomains", rules.at_least(1, NOT_POSITIVE)),
    _domains,
    rules.maybe_one_of("nodeAffinityPolicy"),
    rules.maybe_one_of("nodeTaintsPolicy"),
    match_label_keys,
    rules.optional("labelSelector", labels.validate_selector),
)


validate_gates = rules.items(
    lambda gate, path: labels.validate_key(gate.get("name", ""), path), key="name", at_key=False
)
"""Checks scheduling gates."""
