"""Where a pod may run: node selectors, affinity, tolerations, spreading, gates.

Source: pkg/apis/core/validation/validation.go#validateAffinity, #ValidateTolerations,
#validateTopologySpreadConstraints.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels
from kcm_cli.sandbox.apiserver.validation.quantities import NOT_POSITIVE

TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WEIGHT = "must be in the range 1-100"
_ANY_KEY = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
_BAD_OPERATOR = "not a valid selector operator"


def validate_affinity(affinity: Tree, path: str, *, lenient: bool = False) -> list[FieldError]:
    """Node and pod affinity. ``lenient``: an older object has values that no label can have."""
    found: list[FieldError] = []
    if (node := affinity.get("nodeAffinity")) is not None:
        found += validate_node_affinity(node, f"{path}.nodeAffinity", lenient=lenient)
    for field in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(field)
        if rules is not None:
            found += _pod_affinity(rules, f"{path}.{field}", lenient)
    return found


def validate_node_affinity(affinity: Tree, path: str, *, lenient: bool = False) -> list[FieldError]:
    """Which nodes a pod needs or likes."""
    found: list[FieldError] = []
    if (required := affinity.get(_REQUIRED)) is not None:
        found += validate_node_selector(required, f"{path}.{_REQUIRED}", lenient=lenient)
    for index, term in enumerate(affinity.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < term.get("weight", 0) <= 100:
            found.append(errors.invalid(f"{place}.weight", term.get("weight", 0), _WEIGHT))
        found += _node_term(term.get("preference") or {}, f"{place}.preference", lenient=True)
    return found


def validate_node_selector(selector: Tree, path: str, *, lenient: bool = False) -> list[FieldError]:
    """Terms of which one has to hold."""
    terms = selector.get("nodeSelectorTerms")
    if not terms:
        return [errors.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    found: list[FieldError] = []
    for index, term in enumerate(terms):
        found += _node_term(term, f"{path}.nodeSelectorTerms[{index}]", lenient=lenient)
    return found


def _node_term(term: Tree, path: str, *, lenient: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, item in enumerate(term.get("matchExpressions") or ()):
        found += _node_expression(item, f"{path}.matchExpressions[{index}]", lenient)
    for index, item in enumerate(term.get("matchFields") or ()):
        found += _node_field(item, f"{path}.matchFields[{index}]")
    return found


def _node_expression(item: Tree, path: str, lenient: bool) -> list[FieldError]:
    operator, values, key = item.get("operator", ""), item.get("values") or (), item.get("key", "")
    found: list[FieldError] = []
    if operator in ("In", "NotIn"):
        if not values:
            detail = "must be specified when `operator` is 'In' or 'NotIn'"
            found.append(errors.required(f"{path}.values", detail))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            found.append(errors.forbidden(f"{path}.values", detail))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            found.append(errors.required(f"{path}.values", detail))
    else:
        found.append(errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    found += labels.validate_key(key, f"{path}.key")
    if not lenient:
        for index, value in enumerate(values):
            found += errors.invalid_each(f"{path}.values[{index}]", value, labels.value_messages(value))
    return found


def _node_field(item: Tree, path: str) -> list[FieldError]:
    operator, values, key = item.get("operator", ""), item.get("values") or (), item.get("key", "")
    found: list[FieldError] = []
    if operator not in ("In", "NotIn"):
        found.append(errors.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        found.append(errors.required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*found, errors.invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        found += errors.invalid_each(f"{path}.values[{index}]", value, names.dns1123_subdomain(value))
    return found


def _pod_affinity(rules: Tree, path: str, lenient: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for index, term in enumerate(rules.get(_REQUIRED) or ()):
        found += _pod_term(term, f"{path}.{_REQUIRED}[{index}]", lenient)
    for index, weighted in enumerate(rules.get(_PREFERRED) or ()):
        place = f"{path}.{_PREFERRED}[{index}]"
        if not 0 < weighted.get("weight", 0) <= 100:
            found.append(errors.invalid(f"{place}.weight", weighted.get("weight", 0), _WEIGHT))
        found += _pod_term(weighted.get("podAffinityTerm") or {}, f"{place}.podAffinityTerm", lenient)
    return found


def _pod_term(term: Tree, path: str, lenient: bool) -> list[FieldError]:
    found: list[FieldError] = []
    for field in ("labelSelector", "namespaceSelector"):
        found += labels.validate_selector(term.get(field), f"{path}.{field}", lenient_values=lenient)
    for name in term.get("namespaces") or ():
        found += errors.invalid_each(f"{path}.namespace", name, names.dns1123_label(name))
    found += match_label_keys(term, path)
    key = term.get("topologyKey", "")
    if not key:
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    return found + labels.validate_key(key, f"{path}.topologyKey")


def match_label_keys(term: Tree, path: str) -> list[FieldError]:
    """``matchLabelKeys`` and ``mismatchLabelKeys``, which the server has merged into the selector already."""
    keys, mismatched = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    if not keys and not mismatched:
        return []
    selector = term.get("labelSelector")
    found = _label_keys(keys, selector, f"{path}.matchLabelKeys")
    found += _label_keys(mismatched, selector, f"{path}.mismatchLabelKeys")
    detail = "exists in both matchLabelKeys and labelSelector"
    places = {key: index for index, key in enumerate(keys)}
    seen = set((selector or {}).get("matchLabels") or ())
    for item in (selector or {}).get("matchExpressions") or ():
        key = item.get("key", "")
        if key in places and key in seen:
            found.append(errors.invalid(f"{path}[{places[key]}]", key, detail))
        seen.add(key)
    detail = "exists in both matchLabelKeys and mismatchLabelKeys"
    for index, key in enumerate(keys):
        if key in mismatched:
            found.append(errors.invalid(f"{path}.matchLabelKeys[{index}]", key, detail))
    return found


def _label_keys(keys: list[str] | tuple[str, ...], selector: Tree | None, path: str) -> list[FieldError]:
    if not keys:
        return []
    if selector is None:
        return [errors.forbidden(path, "must not be specified when labelSelector is not set")]
    found: list[FieldError] = []
    for index, key in enumerate(keys):
        found += labels.validate_key(key, f"{path}[{index}]")
    return found


def validate_taint_effect(effect: str, path: str) -> list[FieldError]:
    """One of the three effects."""
    if effect in TAINT_EFFECTS:
        return []
    return [errors.not_supported(path, effect, TAINT_EFFECTS)]


def validate_tolerations(tolerations: list[Tree], path: str) -> list[FieldError]:
    """Which taints a pod puts up with."""
    found: list[FieldError] = []
    for index, item in enumerate(tolerations):
        operator, effect = item.get("operator"), item.get("effect")
        if operator == "Exists" and effect == "NoExecute" and "value" not in item:
            key = item.get("key", "")
            if not key or not labels.key_messages(key):
                continue
        found += _toleration(item, f"{path}[{index}]")
    return found


def _toleration(item: Tree, path: str) -> list[FieldError]:
    key, operator = item.get("key", ""), item.get("operator", "")
    effect, value = item.get("effect", ""), item.get("value", "")
    found = labels.validate_key(key, f"{path}.key") if key else []
    if not key and operator != "Exists":
        found.append(errors.invalid(f"{path}.operator", operator, _ANY_KEY))
    if item.get("tolerationSeconds") is not None and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(errors.invalid(f"{path}.effect", effect, detail))
    if operator in ("Equal", ""):
        if messages := labels.value_messages(value):
            found.append(errors.invalid(f"{path}.operator", value, ";".join(messages)))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            found.append(errors.invalid(f"{path}.operator", value, detail))
    else:
        choices = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
        found.append(errors.not_supported(f"{path}.operator", operator, choices))
    return found + (validate_taint_effect(effect, f"{path}.effect") if effect else [])


def validate_spreading(constraints: list[Tree], path: str) -> list[FieldError]:
    """Topology spread constraints."""
    found: list[FieldError] = []
    for index, item in enumerate(constraints):
        place = f"{path}[{index}]"
        found += _constraint(item, place)
        pair = (item.get("topologyKey", ""), item.get("whenUnsatisfiable", ""))
        later = constraints[index + 1 :]
        if any((other.get("topologyKey", ""), other.get("whenUnsatisfiable", "")) == pair for other in later):
            shown = f"{{{pair[0]}, {pair[1]}}}"
            found.append(errors.duplicate(f"{place}.{{topologyKey, whenUnsatisfiable}}", shown))
        found += _constraint_options(item, place)
    return found


def _constraint(item: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    if item.get("maxSkew", 0) <= 0:
        found.append(errors.invalid(f"{path}.maxSkew", item.get("maxSkew", 0), NOT_POSITIVE))
    if not item.get("topologyKey"):
        found.append(errors.required(f"{path}.topologyKey", "can not be empty"))
    action = item.get("whenUnsatisfiable", "")
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        choices = ["DoNotSchedule", "ScheduleAnyway"]
        found.append(errors.not_supported(f"{path}.whenUnsatisfiable", action, choices))
    return found


def _constraint_options(item: Tree, path: str) -> list[FieldError]:
    found: list[FieldError] = []
    domains, action = item.get("minDomains"), item.get("whenUnsatisfiable", "")
    if domains is not None:
        if domains <= 0:
            found.append(errors.invalid(f"{path}.minDomains", domains, NOT_POSITIVE))
        if action != "DoNotSchedule":
            detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
            found.append(errors.invalid(f"{path}.minDomains", domains, detail))
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        policy = item.get(field)
        if policy is not None and policy not in ("Honor", "Ignore"):
            found.append(errors.not_supported(f"{path}.{field}", policy, ["Honor", "Ignore"]))
    found += match_label_keys(item, path)
    return found + labels.validate_selector(item.get("labelSelector"), f"{path}.labelSelector")


def validate_gates(gates: list[Tree], path: str) -> list[FieldError]:
    """Scheduling gates."""
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        found += labels.validate_key(name, f"{path}[{index}]")
        if name in seen:
            found.append(errors.duplicate(f"{path}[{index}]", name))
        seen.add(name)
    return found
