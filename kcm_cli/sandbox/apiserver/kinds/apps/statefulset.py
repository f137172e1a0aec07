"""StatefulSet.

Source: pkg/apis/apps/v1/defaults.go, pkg/apis/apps/validation,
pkg/registry/apps/statefulset/strategy.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.defaulting import fill, pod, volumes
from kcm_cli.sandbox.apiserver.defaulting.workloads import ONE_REPLICA, spec_of, zero_counters
from kcm_cli.sandbox.apiserver.kinds.apps import common
from kcm_cli.sandbox.apiserver.kinds.apps.common import READY
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.strategy.templates import drop_gated_fields, update_with_template
from kcm_cli.sandbox.apiserver.strategy.warnings import pods
from kcm_cli.sandbox.apiserver.strategy.warnings import storage as warnings_storage
from kcm_cli.sandbox.apiserver.strategy.warnings.workloads import changed
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Layout, created
from kcm_cli.sandbox.apiserver.tables.templates import CONTAINERS, IMAGES, containers
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata, numbers, pod_annotations, pod_template
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


def validate_stateful_set(doc: Tree) -> Errors:
    yield from metadata.validate_meta(doc["metadata"], True, metadata.label)
    yield from _spec(doc["spec"], new=True)


def validate_stateful_set_update(new: Tree, old: Tree) -> Errors:
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    known_bad = any(_spec(old["spec"], new=False)) if new["spec"] != old["spec"] else False
    yield from _spec(new["spec"], new=False, check_template=not known_bad)
    changed = {key: value for key, value in new["spec"].items() if key not in _MUTABLE}
    if changed != {key: value for key, value in old["spec"].items() if key not in _MUTABLE}:
        yield errors.forbidden("spec", _IMMUTABLE_SPEC)


def validate_stateful_set_status(new: Tree, old: Tree) -> Errors:
    status = new.get("status") or {}
    yield from numbers.non_negative(status, _COUNTERS, "status")
    yield from numbers.not_above(status, _BOUNDED, "replicas", "status")
    yield from numbers.not_above(status, ("availableReplicas",), "readyReplicas", "status")
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    yield from common.not_decremented(status, old.get("status") or {}, "collisionCount", "status")


def _spec(spec: Tree, *, new: bool, check_template: bool = True) -> Errors:
    yield from _policies(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()) if new else ():
        yield from validate_claim_spec(claim.get("spec") or {}, f"spec.volumeClaimTemplates[{index}].spec")
    yield from numbers.non_negative(spec, ("replicas", "minReadySeconds"), "spec")
    if (ordinals := spec.get("ordinals")) is not None:
        yield from numbers.non_negative(ordinals, ("start",), "spec.ordinals")
    service = spec.get("serviceName")
    if new and service:
        yield from errors.invalid_each("spec.serviceName", service, names.dns1123_label(service))
    yield from _selector_and_template(spec, check_template)
    yield from pod_template.validate_long_running(spec.get("template") or {}, "spec.template", "StatefulSet")


def _policies(spec: Tree) -> Errors:
    management = spec.get("podManagementPolicy")
    if not management:
        yield errors.required("spec.podManagementPolicy")
    elif management not in ("OrderedReady", "Parallel"):
        yield errors.invalid("spec.podManagementPolicy", management, "must be 'OrderedReady' or 'Parallel'")
    yield from _update_strategy(spec.get("updateStrategy") or {}, "spec.updateStrategy")
    retention = spec.get("persistentVolumeClaimRetentionPolicy") or {}
    for field in ("whenDeleted", "whenScaled"):
        policy = retention.get(field, "Retain")
        if policy not in ("Retain", "Delete"):
            path = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            yield errors.not_supported(path, policy, ["Retain", "Delete"])


def _update_strategy(strategy: Tree, path: str) -> Errors:
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
            return [errors.invalid(f"{path}.rollingUpdate", shown, "only allowed for updateStrategy 'RollingUpdate'")]
        case "RollingUpdate":
            return [] if rolling is None else _rolling(rolling, f"{path}.rollingUpdate")
        case other:
            detail = "must be 'RollingUpdate' or 'OnDelete'"
            return [errors.invalid(path, {"Type": other, "RollingUpdate": shown}, detail)]


def _rolling(rolling: Tree, path: str) -> Errors:
    yield from numbers.non_negative(rolling, ("partition",), path)
    unavailable = rolling.get("maxUnavailable")
    if unavailable is not None:
        yield from numbers.count_or_percent(unavailable, f"{path}.maxUnavailable")
        if common.amount(unavailable) == 0:
            yield errors.invalid(f"{path}.maxUnavailable", unavailable, "cannot be 0")
        yield from numbers.at_most_100_percent(unavailable, f"{path}.maxUnavailable")


def _selector_and_template(spec: Tree, check_template: bool) -> Errors:
    selector = spec.get("selector")
    if selector is None:
        yield errors.required("spec.selector")
    else:
        yield from labels.validate_selector(selector, "spec.selector")
        if labels.selector_is_empty(selector):
            yield errors.invalid("spec.selector", labels.shown(selector), "empty selector is invalid for statefulset")
    compiled = labels.compile_selector(selector)
    if compiled is None:
        yield errors.invalid("spec.selector", labels.shown(selector), "")
        return
    template = _as_run(spec)
    yield from pod_template.validate_match(template, compiled, "spec.template")
    if check_template:
        yield from pod_template.validate_template(template, "spec.template")
    yield from _template_meta(template.get("metadata") or {}, template.get("spec") or {})


def _template_meta(meta: Tree, pod: Tree) -> Errors:
    """Labels and annotations once more: their causes are listed twice."""
    yield from labels.validate_labels(meta.get("labels"), "spec.template.labels")
    if annotations := meta.get("annotations"):
        yield from labels.validate_annotations(annotations, "spec.template.annotations")
        yield from pod_annotations.validate_annotations(annotations, pod, "spec.template.annotations")


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


_STATEFUL_SET = (*ONE_REPLICA, ("revisionHistoryLimit", 10))


def _defaults(doc: Tree) -> None:
    spec = spec_of(doc)
    if not spec.get("podManagementPolicy"):
        spec["podManagementPolicy"] = "OrderedReady"
    strategy = spec.setdefault("updateStrategy", {})
    if not strategy.get("type"):
        strategy["type"] = "RollingUpdate"
        fill.made(strategy, "rollingUpdate")
    rolling = strategy.get("rollingUpdate")
    if strategy["type"] == "RollingUpdate" and rolling is not None:
        fill.absent(rolling, (("partition", 0),))
    retention = fill.made(spec, "persistentVolumeClaimRetentionPolicy")
    for field in ("whenDeleted", "whenScaled"):
        if not retention.get(field):
            retention[field] = "Retain"
    fill.absent(spec, _STATEFUL_SET)
    spec.setdefault("serviceName", "")
    pod.template(spec)
    for claim in spec.get("volumeClaimTemplates") or ():
        claim.setdefault("metadata", {})
        claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
        volumes.claim(claim)
    zero_counters(doc, ("replicas", "availableReplicas"))


_HISTORY = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"


def of_stateful_set(new: Tree, old: Tree | None) -> list[str]:
    """A StatefulSet."""
    spec, found = new["spec"], list[str]()
    if changed(new, old):
        found += pods.of_template(spec.get("template"), "spec.template")
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        path = f"spec.volumeClaimTemplates[{index}]"
        found += warnings_storage.of_claim_spec(claim.get("spec") or {}, path if old is None else f"{path}.Spec")
    return [*found, _HISTORY] if (spec.get("revisionHistoryLimit") or 0) < 0 else found


def _drop_max_unavailable(new: Tree, old: Tree | None = None) -> None:
    """The gate MaxUnavailableStatefulSet is off: the field is dropped unless the older object uses it."""
    after, before = ((doc or {}).get("spec", {}).get("updateStrategy", {}).get("rollingUpdate") for doc in (new, old))
    if after and (before or {}).get("maxUnavailable") is None:
        after.pop("maxUnavailable", None)


def _stateful_set_update(new: Tree, old: Tree) -> None:
    _drop_max_unavailable(new, old)
    update_with_template(new, old)


def _new_stateful_set(doc: Tree) -> None:
    drop_gated_fields(doc)
    _drop_max_unavailable(doc)
    doc["status"] = {"replicas": 0, "availableReplicas": 0}
    parts.first_generation(doc)


def _cells(doc: Tree, now: datetime) -> list[object]:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas') or 0}"
    return [doc["metadata"]["name"], ready, created(doc, now), *containers(spec.get("template"))]


KIND = Kind(
    "apps",
    "statefulsets",
    defaults=_defaults,
    strategy=Strategy(
        on_create=_new_stateful_set,
        on_update=_stateful_set_update,
        on_status=parts.status_update,
        check_create=validate_stateful_set,
        check_update=validate_stateful_set_update,
        check_status=validate_stateful_set_status,
        warn=of_stateful_set,
    ),
    table=Layout((NAME, READY, AGE, CONTAINERS, IMAGES), _cells),
)
