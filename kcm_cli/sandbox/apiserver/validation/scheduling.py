"""Where a pod may run: node selectors, affinity, tolerations, spreading, gates.

Source: pkg/apis/core/validation/validation.go#validateAffinity, #ValidateTolerations,
#validateTopologySpreadConstraints.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels
from kcm_cli.sandbox.apiserver.validation.quantities import NOT_POSITIVE

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_ANY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_BAD_OPERATOR = "not a valid selector operator"


def validate_affinity(affinity: Tree, path: str, *, lenient: bool = False) -> Errors:
    """Node and pod affinity. ``lenient``: an older object has values that no label can have."""
    if (node := affinity.get("nodeAffinity")) is not None:
        yield from validate_node_affinity(node, f"{path}.nodeAffinity", lenient=lenient)
    for field in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(field)
        if rules is not None:
            yield from _pod_affinity(rules, f"{path}.{field}", lenient)


def validate_node_affinity(affinity: Tree, path: str, *, lenient: bool = False) -> Errors:
    """Which nodes a pod needs or likes."""
    if (required := affinity.get(_REQUIRED)) is not None:
        yield from validate_node_selector(required, f"{path}.{_REQUIRED}", lenient=lenient)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < term.get("weight", 0) <= 100:
            yield errors.invalid(f"{place}.weight", term.get("weight", 0), _WEIGHT)
        yield from _node_term(term.get("preference") or {}, f"{place}.preference", lenient=True)


def validate_node_selector(selector: Tree, path: str, *, lenient: bool = False) -> Errors:
    """Terms of which one has to hold."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        yield errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")
        return
    for index, term in enumerate(terms):
        yield from _node_term(term, f"{path}.nodeSelectorTerms[{index}]", lenient=lenient)


def _node_term(term: Tree, path: str, *, lenient: bool) -> Errors:
    for index, item in enumerate(term.get("matchExpressions") or ()):
        yield from _node_expression(item, f"{path}.matchExpressions[{index}]", lenient)
    for index, item in enumerate(term.get("matchFields") or ()):
        yield from _node_field(item, f"{path}.matchFields[{index}]")


def _node_expression(item: Tree, path: str, lenient: bool) -> Errors:
    operator, values, key = item.get("operator", ""), item.get("values") or (), item.get("key", "")
    if operator in ("In", "NotIn"):
        if not values:
            yield errors.required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'")
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            yield errors.forbidden(f"{path}.values", detail)
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            yield errors.required(f"{path}.values", "must be specified single value when `operator` is 'Lt' or 'Gt'")
    else:
        yield errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    yield from labels.validate_key(key, f"{path}.key")
    if not lenient:
        for index, value in enumerate(values):
            yield from errors.invalid_each(f"{path}.values[{index}]", value, labels.value_messages(value))


def _node_field(item: Tree, path: str) -> Errors:
    operator, values, key = item.get("operator", ""), item.get("values") or (), item.get("key", "")
    if operator not in ("In", "NotIn"):
        yield errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR)
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        yield errors.required(f"{path}.values", detail)
    if key != "metadata.name":
        yield errors.invalid(f"{path}.key", key, "not a valid field selector key")
        return
    for index, value in enumerate(values):
        yield from errors.invalid_each(f"{path}.values[{index}]", value, names.dns1123_subdomain(value))


def _pod_affinity(rules: Tree, path: str, lenient: bool) -> Errors:
    for index, term in enumerate(rules.get(_REQUIRED) or ()):
        yield from _pod_term(term, f"{path}.{_REQUIRED}[{index}]", lenient)
    for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < weighted.get("weight", 0) <= 100:
            yield errors.invalid(f"{place}.weight", weighted.get("weight", 0), _WEIGHT)
        yield from _pod_term(weighted.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm", lenient)


def _pod_term(term: Tree, path: str, lenient: bool) -> Errors:
    for field in ("labelSelector", "namespaceSelector"):
        yield from labels.validate_selector(term.get(field), f"{path}.{field}", lenient_values=lenient)
    for name in term.get("namespaces") or ():
        yield from errors.invalid_each(f"{path}.namespace", name, names.dns1123_label(name))
    yield from match_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        yield errors.required(f"{path}.topologyKey", "can not be empty")
    yield from labels.validate_key(key, f"{path}.topologyKey")


def match_label_keys(term: Tree, path: str) -> Errors:
    """``matchLabelKeys`` and ``mismatchLabelKeys``, which the server has merged into the selector already."""
    keys, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    if not keys and not mismatched:
        return
    selector = term.get("labelSelector")
    yield from _label_keys(keys, selector, f"{path}.matchLabelKeys")
    yield from _label_keys(mismatched, selector, f"{path}.mismatchLabelKeys")
    detail = "exists in both matchLabelKeys and labelSelector"
    places = {key: index for index, key in enumerate(keys)}
    seen = set((selector or {}).get("matchLabels") or ())
    for item in (selector or {}).get("matchExpressions") or ():
        key = item.get("key", "")
        if key in places and key in seen:
            yield errors.invalid(f"{path}[{places[key]}]", key, detail)
        seen.add(key)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    for index, key in enumerate(keys):
        if key in mismatched:
            yield errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail)


def _label_keys(keys: list[str] | tuple[str, ...], selector: Tree | None, path: str) -> Errors:
    if not keys:
        return
    if selector is None:
        yield errors.forbidden(path, "must not be specified when labelSelector is not set")
        return
    for index, key in enumerate(keys):
        yield from labels.validate_key(key, f"{path}[{index}]")


def validate_taint_effect(effect: str, path: str) -> Errors:
    """One of the three effects."""
    if effect in TAINT_EFFECTS:
        return []
    return [errors.not_supported(path, effect, TAINT_EFFECTS)]


def validate_tolerations(tolerations: list[Tree], path: str) -> Errors:
    """Which taints a pod puts up with."""
    for index, item in enumerate(tolerations):
        operator, effect = item.get("operator"), item.get("effect")
        if operator == "Exists" and effect == "NoExecute" and "value" not in item:
            key = item.get("key", "")
            if not key or not labels.key_messages(key):
                continue
        yield from _toleration(item, f"{path}[{index}]")


def _toleration(item: Tree, path: str) -> Errors:
    key, operator = item.get("key", ""), item.get("operator", "")
    effect, value = item.get("effect", ""), item.get("value", "")
    if key:
        yield from labels.validate_key(key, f"{path}.key")
    if not key and operator != "Exists":
        yield errors.invalid(f"{path}.operator", operator, _ANY_KEY)
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        yield errors.invalid(f"{path}.effect", effect, "effect must be 'NoExecute' when `tolerationSeconds` is set")
    if operator in ("Equal", ""):
        if messages := labels.value_messages(value):
            yield errors.invalid(f"{path}.operator", value, ";".join(messages))
    elif operator == "Exists":
        if value:
            yield errors.invalid(f"{path}.operator", value, "value must be empty when `operator` is 'Exists'")
    else:
        choices = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
        yield errors.not_supported(f"{path}.operator", operator, choices)
    if effect:
        yield from validate_taint_effect(effect, f"{path}.effect")


def validate_spreading(constraints: list[Tree], path: str) -> Errors:
    """Topology spread constraints."""
    for index, item in enumerate(constraints):
        place = f"{path}[{index}]"
        yield from _constraint(item, place)
        pair = (item.get("topologyKey", ""), item.get("whenUnsatisfiable", ""))
        later = constraints[index + 1 :]
        if any((other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == pair for other in later):
            shown = f"{{{pair[0]}, {pair[1]}}}"
            yield errors.duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", shown)
        yield from _constraint_options(item, place)


def _constraint(item: Tree, path: str) -> Errors:
    if item.get("maxSkew", 0) <= 0:
        yield errors.invalid(f"{path}.maxSkew", item.get("maxSkew", 0), NOT_POSITIVE)
    if not item.get("topologyKey"):
        yield errors.required(f"{path}.topologyKey", "can not be empty")
    action = item.get("whenUnsatisfiable", "")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        choices = ["DoNotSchedule", "ScheduleAnyway"]
        yield errors.not_supported(f"{path}.whenUnsatisfiable", action, choices)


def _constraint_options(item: Tree, path: str) -> Errors:
    domains, action = item.get("minDomains"), item.get("whenUnsatisfiable", "")
    if domains is not None:
        if domains <= 0:
            yield errors.invalid(f"{path}.minDomains", domains, NOT_POSITIVE)
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            yield errors.invalid(f"{path}.minDomains", domains, detail)
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = item.get(field)
        if policy is not None and policy not in ("Honor", "Ignore"):
            yield errors.not_supported(f"{path}.{field}", policy, ["Honor", "Ignore"])
    yield from match_label_keys(item, path)
    yield from labels.validate_selector(item.get("labelSelector"), f"{path}.labelSelector")


def validate_gates(gates: list[Tree], path: str) -> Errors:
    """Scheduling gates."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        yield from labels.validate_key(name, f"{path}[{index}]")
        if name in seen:
            yield errors.duplicate(f"{path}[{index}]", name)
        seen.add(name)
