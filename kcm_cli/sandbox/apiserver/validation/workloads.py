"""Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and PodTemplates.

Source: pkg/apis/apps/validation/validation.go, pkg/apis/core/validation/validation.go.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, numbers, pod_template

_RS_COUNTERS = (
    "replicas",
    "fullyLabeledReplicas",
    "readyReplicas",
    "availableReplicas",
    "observedGeneration",
    "terminatingReplicas",
)
_DEPLOYMENT_COUNTERS = (
    "observedGeneration",
    "replicas",
    "updatedReplicas",
    "readyReplicas",
    "availableReplicas",
    "unavailableReplicas",
    "terminatingReplicas",
    "collisionCount",
)
_DS_COUNTERS = (
    "currentNumberScheduled",
    "numberMisscheduled",
    "desiredNumberScheduled",
    "numberReady",
    "observedGeneration",
    "updatedNumberScheduled",
    "numberAvailable",
    "numberUnavailable",
    "collisionCount",
)


def validate_deployment(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], True, metadata.subdomain) + _deployment_spec(doc["spec"])


def validate_deployment_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"]) + _deployment_spec(new["spec"], old["spec"])
    return found + _immutable_selector(new, old)


def validate_deployment_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    status = new.get("status") or {}
    found += numbers.non_negative(status, _DEPLOYMENT_COUNTERS, "status")
    found += numbers.not_above(status, ("updatedReplicas", "readyReplicas", "availableReplicas"), "replicas", "status")
    found += _available_within_ready(status)
    return found + numbers.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _deployment_spec(spec: Tree, known: Tree | None = None) -> list[FieldError]:
    found = numbers.non_negative(spec, ("replicas",), "spec")
    found += _replica_template(spec, known)
    found += _deployment_strategy(spec.get("strategy") or {}, "spec.strategy")
    found += numbers.non_negative(spec, ("minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"), "spec")
    deadline = spec.get("progressDeadlineSeconds")
    if deadline is not None and deadline <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        found.append(errors.invalid("spec.progressDeadlineSeconds", deadline, detail))
    return found


def _replica_template(spec: Tree, known: Tree | None) -> list[FieldError]:
    """Selector and template of a Deployment or ReplicaSet."""
    selector = spec.get("selector")
    found = _selector(selector, "deployment")
    compiled = labels.compile_selector(selector)
    if compiled is None:
        found.append(errors.invalid("spec.selector", labels.shown(selector), "invalid label selector"))
        return found
    template = spec.get("template") or {}
    found += pod_template.validate_match(template, compiled, "spec.template")
    found += pod_template.validate_template(template, "spec.template", _template(known))
    return found + pod_template.validate_long_running(template, "spec.template", "ReplicaSet")


def _template(spec: Tree | None) -> Tree | None:
    return None if spec is None else spec.get("template")


def _selector(selector: Tree | None, kind: str) -> list[FieldError]:
    if selector is None:
        return [errors.required("spec.selector")]
    found = labels.validate_selector(selector, "spec.selector")
    if labels.selector_is_empty(selector):
        detail = f"empty selector is invalid for {kind}"
        found.append(errors.invalid("spec.selector", labels.shown(selector), detail))
    return found


def _immutable_selector(new: Tree, old: Tree) -> list[FieldError]:
    selector = new["spec"].get("selector")
    if selector == old["spec"].get("selector"):
        return []
    return [errors.invalid("spec.selector", labels.shown(selector), errors.IMMUTABLE)]


def _shown_strategy(strategy: Tree) -> Tree:
    return {"Type": strategy.get("type", ""), "RollingUpdate": _shown_rolling(strategy.get("rollingUpdate"))}


def _shown_rolling(rolling: Tree | None) -> Tree | None:
    if rolling is None:
        return None
    if "partition" in rolling:
        return {"Partition": rolling["partition"], "MaxUnavailable": rolling.get("maxUnavailable")}
    return {"MaxUnavailable": rolling.get("maxUnavailable", 0), "MaxSurge": rolling.get("maxSurge", 0)}


def _deployment_strategy(strategy: Tree, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    match strategy.get("type"):
        case "Recreate":
            if rolling is None:
                return []
            detail = "may not be specified when strategy `type` is 'Recreate'"
            return [errors.forbidden(f"{path}.rollingUpdate", detail)]
        case "RollingUpdate":
            if rolling is None:
                detail = "this should be defaulted and never be nil"
                return [errors.required(f"{path}.rollingUpdate", detail)]
            return _rolling_deployment(rolling, f"{path}.rollingUpdate")
        case _:
            return [errors.not_supported(path, _shown_strategy(strategy), ["Recreate", "RollingUpdate"])]


def _rolling_deployment(rolling: Tree, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
    found += numbers.count_or_percent(surge, f"{path}.maxSurge")
    if numbers.amount(unavailable) == 0 and numbers.amount(surge) == 0:
        detail = "may not be 0 when `maxSurge` is 0"
        found.append(errors.invalid(f"{path}.maxUnavailable", unavailable, detail))
    return found + numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")


def validate_replica_set(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], True, metadata.subdomain) + _replica_set_spec(doc["spec"])


def validate_replica_set_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"]) + _replica_set_spec(
        new["spec"], old["spec"]
    )
    return found + _immutable_selector(new, old)


def validate_replica_set_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _replica_status(new.get("status") or {})


def _replica_set_spec(spec: Tree, known: Tree | None = None) -> list[FieldError]:
    return numbers.non_negative(spec, ("replicas", "minReadySeconds"), "spec") + _replica_template(spec, known)


def _replica_status(status: Tree) -> list[FieldError]:
    found = numbers.non_negative(status, _RS_COUNTERS, "status")
    bounded = ("fullyLabeledReplicas", "readyReplicas", "availableReplicas")
    found += numbers.not_above(status, bounded, "replicas", "status")
    return found + _available_within_ready(status)


def _available_within_ready(status: Tree) -> list[FieldError]:
    available = status.get("availableReplicas", 0)
    if available <= status.get("readyReplicas", 0):
        return []
    return [errors.invalid("status.availableReplicas", available, "cannot be greater than readyReplicas")]


def validate_replication_controller(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + _replication_controller_spec(doc["spec"])


def validate_replication_controller_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _replication_controller_spec(new["spec"], old["spec"])


def validate_replication_controller_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + _replica_status(new.get("status") or {})


def _replication_controller_spec(spec: Tree, known: Tree | None = None) -> list[FieldError]:
    found = numbers.non_negative(spec, ("minReadySeconds",), "spec")
    selector, template = spec.get("selector") or {}, spec.get("template")
    if not selector:
        found.append(errors.required("spec.selector"))
    found += numbers.non_negative(spec, ("replicas",), "spec")
    if template is None:
        return [*found, errors.required("spec.template")]
    own = (template.get("metadata") or {}).get("labels")
    if selector and any((own or {}).get(key) != value for key, value in selector.items()):
        found.append(errors.invalid("spec.template.metadata.labels", errors.sorted_map(own), pod_template.NO_MATCH))
    found += pod_template.validate_template(template, "spec.template", _template(known))
    return found + pod_template.validate_long_running(template, "spec.template", "ReplicationController")


def validate_daemon_set(doc: Tree) -> list[FieldError]:
    return metadata.validate_meta(doc["metadata"], True, metadata.subdomain) + _daemon_set_spec(doc["spec"])


def validate_daemon_set_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    found += _immutable_selector(new, old)
    lenient = labels.has_invalid_value(old["spec"].get("selector"))
    return found + _daemon_set_spec(new["spec"], old["spec"], lenient=lenient)


def validate_daemon_set_status(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    status = new.get("status") or {}
    found += numbers.non_negative(status, _DS_COUNTERS, "status")
    return found + numbers.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _daemon_set_spec(spec: Tree, known: Tree | None = None, *, lenient: bool = False) -> list[FieldError]:
    selector, template = spec.get("selector"), spec.get("template") or {}
    found = labels.validate_selector(selector, "spec.selector", lenient_values=lenient)
    compiled = labels.compile_selector(selector)
    if compiled is not None:
        found += pod_template.validate_match(template, compiled, "spec.template")
    if selector is not None and labels.selector_is_empty(selector):
        detail = "empty selector is invalid for daemonset"
        found.append(errors.invalid("spec.selector", labels.shown(selector), detail))
    found += pod_template.validate_template(template, "spec.template", _template(known))
    found += pod_template.validate_long_running(template, "spec.template", "DaemonSet")
    found += numbers.non_negative(spec, ("minReadySeconds",), "spec")
    found += _daemon_set_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    return found + numbers.non_negative(spec, ("revisionHistoryLimit",), "spec")


def _daemon_set_strategy(strategy: Tree, path: str) -> list[FieldError]:
    match strategy.get("type"):
        case "OnDelete":
            return []
        case "RollingUpdate":
            rolling = strategy.get("rollingUpdate")
            if rolling is None:
                return [errors.required(f"{path}.rollingUpdate")]
            return _rolling_daemon_set(rolling, f"{path}.rollingUpdate")
        case _:
            return [errors.not_supported(path, _shown_strategy(strategy), ["RollingUpdate", "OnDelete"])]


def _rolling_daemon_set(rolling: Tree, path: str) -> list[FieldError]:
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
    found += numbers.count_or_percent(surge, f"{path}.maxSurge")
    found += numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    found += numbers.at_most_100_percent(surge, f"{path}.maxSurge")
    has_unavailable, has_surge = numbers.amount(unavailable) != 0, numbers.amount(surge) != 0
    if has_unavailable and has_surge:
        found.append(errors.invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif not has_unavailable and not has_surge:
        found.append(errors.required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


def validate_pod_template(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + pod_template.validate_template(doc.get("template") or {}, "template")


def validate_pod_template_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + pod_template.validate_template(new.get("template") or {}, "template", old.get("template"))
