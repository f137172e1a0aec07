"""StatefulSets.

Source: pkg/apis/apps/validation/validation.go#ValidateStatefulSetSpec.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import (
    errors,
    labels,
    metadata,
    numbers,
    pod_annotations,
    pod_template,
)
from kcm_cli.sandbox.apiserver.validation.persistent_claim import validate_claim_spec

_COUNTERS = (
    "replicas",
    "readyReplicas",
    "currentReplicas",
    "updatedReplicas",
    "availableReplicas",
    "observedGeneration",
    "collisionCount",
)
_BOUNDED = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
_MUTABLE = (
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
)
_IMMUTABLE_SPEC = (
    "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', "
    "'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden"
)


def validate_stateful_set(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.label)
    return found + _spec(doc["spec"], new=True)


def validate_stateful_set_update(new: Tree, old: Tree) -> list[FieldError]:
    found = metadata.validate_meta_update(new["metadata"], old["metadata"])
    known_bad = bool(_spec(old["spec"], new=False)) if new["spec"] != old["spec"] else False
    found += _spec(new["spec"], new=False, check_template=not known_bad)
    changed = {key: value for key, value in new["spec"].items() if key not in _MUTABLE}
    if changed != {key: value for key, value in old["spec"].items() if key not in _MUTABLE}:
        found.append(errors.forbidden("spec", _IMMUTABLE_SPEC))
    return found


def validate_stateful_set_status(new: Tree, old: Tree) -> list[FieldError]:
    status = new.get("status") or {}
    found = numbers.non_negative(status, _COUNTERS, "status")
    found += numbers.not_above(status, _BOUNDED, "replicas", "status")
    found += numbers.not_above(status, ("availableReplicas",), "readyReplicas", "status")
    found += metadata.validate_meta_update(new["metadata"], old["metadata"])
    return found + numbers.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _spec(spec: Tree, *, new: bool, check_template: bool = True) -> list[FieldError]:
    found = _policies(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()) if new else ():
        found += validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    found += numbers.non_negative(spec, ("replicas", "minReadySeconds"), "spec")
    if (ordinals := spec.get("ordinals")) is not None:
        found += numbers.non_negative(ordinals, ("start",), "spec.ordinals")
    service = spec.get("serviceName")
    if new and service:
        found += errors.invalid_each("spec.serviceName", service, names.dns1123_label(service))
    found += _selector_and_template(spec, check_template)
    return found + pod_template.validate_long_running(spec.get("template") or {}, "spec.template", "StatefulSet")


def _policies(spec: Tree) -> list[FieldError]:
    found: list[FieldError] = []
    management = spec.get("podManagementPolicy")
    if not management:
        found.append(errors.required("spec.podManagementPolicy"))
    elif management not in ("OrderedReady", "Parallel"):
        detail = "must be 'OrderedReady' or 'Parallel'"
        found.append(errors.invalid("spec.podManagementPolicy", management, detail))
    found += _update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        policy = retention.get(field, "Retain")
        if policy not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            found.append(errors.not_supported(path, policy, ["Retain", "Delete"]))
    return found


def _update_strategy(strategy: Tree, path: str) -> list[FieldError]:
    rolling = strategy.get("rollingUpdate")
    shown = rolling and {
        "Partition": rolling.get("partition", 0),
        "MaxUnavailable": rolling.get("maxUnavailable"),
    }
    match strategy.get("type"):
        case "" | None:
            return [errors.required(path)]
        case "OnDelete":
            if rolling is None:
                return []
            detail = "only allowed for updateStrategy 'RollingUpdate'"
            return [errors.invalid(f"{path}.rollingUpdate", shown, detail)]
        case "RollingUpdate":
            return [] if rolling is None else _rolling(rolling, f"{path}.rollingUpdate")
        case other:
            detail = "must be 'RollingUpdate' or 'OnDelete'"
            return [errors.invalid(path, {"Type": other, "RollingUpdate": shown}, detail)]


def _rolling(rolling: Tree, path: str) -> list[FieldError]:
    found = numbers.non_negative(rolling, ("partition",), path)
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        found += numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
        if numbers.amount(unavailable) == 0:
            found.append(errors.invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0"))
        found += numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")
    return found


def _selector_and_template(spec: Tree, check_template: bool) -> list[FieldError]:
    selector = spec.get("selector")
    if selector is None:
        found = [errors.required("spec.selector")]
    else:
        found = labels.validate_selector(selector, "spec.selector")
        if labels.selector_is_empty(selector):
            detail = "empty selector is invalid for statefulset"
            found.append(errors.invalid("spec.selector", labels.shown(selector), detail))
    compiled = labels.compile_selector(selector)
    if compiled is None:
        return [*found, errors.invalid("spec.selector", labels.shown(selector), "")]
    template = _as_run(spec)
    found += pod_template.validate_match(template, compiled, "spec.template")
    if check_template:
        found += pod_template.validate_template(template, "spec.template")
    return found + _template_meta(template.get("metadata") or {}, template.get("spec") or {})


def _template_meta(meta: Tree, pod: Tree) -> list[FieldError]:
    """Labels and annotations once more: their causes are listed twice."""
    found = labels.validate_labels(meta.get("labels"), "spec.template.labels")
    if annotations := meta.get("annotations"):
        found += labels.validate_annotations(annotations, "spec.template.annotations")
        found += pod_annotations.validate_annotations(annotations, pod, "spec.template.annotations")
    return found


def _as_run(spec: Tree) -> Tree:
    """The template with what the controller adds: a volume per claim, no host name of its own."""
    template = spec.get("template") or {}
    claims = spec.get("volumeClaimTemplates") or ()
    pod = template.get("spec") or {}
    if not (claims or pod.get("subdomain") or pod.get("hostname")):
        return template
    own = {claim["metadata"].get("name", "") for claim in claims}
    volumes: list[Tree] = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in sorted(own)]
    volumes += [volume for volume in pod.get("volumes") or () if volume.get("name") not in own]
    changed = {key: value for key, value in pod.items() if key not in ("subdomain", "hostname", "volumes")}
    return {**template, "spec": {**changed, "volumes": volumes}}
