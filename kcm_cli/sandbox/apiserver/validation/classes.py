"""PriorityClasses and RuntimeClasses.

Source: pkg/apis/scheduling/validation/validation.go, pkg/apis/node/validation/validation.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata, quantities, scheduling

_HIGHEST = 1_000_000_000
_SYSTEM = {"system-node-critical": 2_000_001_000, "system-cluster-critical": 2_000_000_000}
_PREEMPTIONS = ("PreemptLowerPriority", "Never")


def validate_priority_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], False, metadata.subdomain)
    name, value = doc["metadata"].get("name", ""), doc.get("value", 0)
    if name.startswith("system-"):
        if problem := _system_problem(name, value, doc.get("globalDefault", False)):
            start = "priority class names with 'system-' prefix are reserved for system use only. error: "
            found.append(errors.forbidden("metadata.name", start + problem))
    elif value > _HIGHEST:
        detail = f"maximum allowed value of a user defined priority is {_HIGHEST}"
        found.append(errors.forbidden("value", detail))
    policy = doc.get("preemptionPolicy")
    return found if policy is None else found + errors.one_of("preemptionPolicy", policy, _PREEMPTIONS)


def _system_problem(name: str, value: int, default: bool) -> str:
    expected = _SYSTEM.get(name)
    if expected is None:
        return f"{name} is not a known system priority class"
    if value != expected:
        return f"value of {name} PriorityClass must be {expected}"
    return f"globalDefault of {name} PriorityClass must be false" if default else ""


def validate_priority_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new.get("value", 0) != old.get("value", 0):
        found.append(errors.forbidden("value", "may not be changed in an update."))
    return found + errors.fixed("preemptionPolicy", new.get("preemptionPolicy"), old.get("preemptionPolicy"))


def validate_runtime_class(doc: Tree) -> list[FieldError]:
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    handler, overhead, where = doc.get("handler", ""), doc.get("overhead"), doc.get("scheduling")
    if handler:
        found += errors.invalid_each("handler", handler, names.dns1123_label(handler))
    else:
        found.append(errors.required("handler"))
    if overhead is not None:
        limits = {"limits": overhead.get("podFixed") or {}}
        found += quantities.validate_container(limits, (), "overhead")
    if where is not None:
        found += labels.validate_labels(where.get("nodeSelector"), "scheduling.nodeSelector")
        found += _tolerations(where.get("tolerations") or [], "scheduling.tolerations")
    return found


def _tolerations(items: list[Tree], path: str) -> list[FieldError]:
    found = scheduling.validate_tolerations(items, path)
    seen: list[Tree] = []
    for index, item in enumerate(items):
        key = {field: value for field, value in item.items() if field != "tolerationSeconds"}
        if key in seen:
            found.append(errors.duplicate(f"{path}[{index}]", go_print.internal("v1.Toleration", item)))
        seen.append(key)
    return found


def validate_runtime_class_update(new: Tree, old: Tree) -> list[FieldError]:
    found = validate_runtime_class(new) + metadata.validate_plain_meta_update(new["metadata"], old["metadata"])
    return found + errors.fixed("handler", new.get("handler", ""), old.get("handler", ""))
