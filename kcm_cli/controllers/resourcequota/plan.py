"""Decides what a quota limits, how much of it is used, and what is written.

upstream: pkg/controller/resourcequota/resource_quota_controller.go#syncResourceQuota,
pkg/quota/v1/install/{registry,update_filter}.go
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from kcm_cli.api.core import PersistentVolumeClaim, Pod, ResourceQuota, ResourceQuotaStatus, Service
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.quantity import ZERO, Quantity, is_quantity, make, parse
from kcm_cli.planning.pod_resources import Amounts, Tree, is_refused
from kcm_cli.planning.quota import devices, pod_usage
from kcm_cli.planning.quota.devices import CLAIM_KIND, DeviceClasses
from kcm_cli.planning.quota.evaluators import EVALUATORS, attribute_classes
from kcm_cli.planning.quota.scopes import NOWHERE, Profile

GroupResource = tuple[str, str]
"""A kind by its group and plural."""
COUNT = "count/"
POD_KIND: GroupResource = ("", "pods")
CLAIMS_KIND: GroupResource = ("", "persistentvolumeclaims")
SERVICES_KIND: GroupResource = ("", "services")
_PLAIN = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")
_IGNORED = frozenset(
    {
        ("", "bindings"),
        ("", "componentstatuses"),
        ("", "events"),
        ("events.k8s.io", "events"),
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)
"""Kinds that quotas never limit: those that are not stored, and Events."""
_RESOURCE_LISTS = frozenset({"requests", "limits", "overhead", "allocatedResources"})


class Features(msgspec.Struct, frozen=True):
    """The feature gates that decide what is charged: DRAExtendedResource, PodLevelResources, InPlacePodVerticalScaling
    (given_to_pods: resources that a node has allocated to a pod), RecoverVolumeExpansionFailure (given_to_claims:
    storage allocated to a claim), VolumeAttributesClass."""

    extended_resources: bool = True
    pod_level_resources: bool = True
    given_to_pods: bool = True
    given_to_claims: bool = True
    attributes_class: bool = True


def covers(kind: GroupResource, name: str, classes: DeviceClasses) -> bool:
    """Whether a resource name of a quota applies to a kind."""
    evaluator = EVALUATORS.get(kind)
    if evaluator is None:
        return counted_kind(name) == kind
    return evaluator.covers(name) or (kind == CLAIM_KIND and devices.covers(name, classes))


def plan_kinds(
    names: Collection[str], classes: DeviceClasses
) -> tuple[frozenset[GroupResource], frozenset[GroupResource]]:
    """(the kinds to measure, the kinds to count) for these resource names."""
    measured = (kind for kind in EVALUATORS if any(covers(kind, name, classes) for name in names))
    counted = {counted_kind(name) for name in names} - EVALUATORS.keys()
    return frozenset(measured), frozenset(kind for kind in counted if kind is not None)


def counted_kind(name: str) -> GroupResource | None:
    """The kind whose objects a resource name counts; None for other names, and for kinds that quotas ignore."""
    if name in _PLAIN:
        return "", name
    if not name.startswith(COUNT):
        return None
    plural, _, group = name.removeprefix(COUNT).partition(".")
    return None if (group, plural) in _IGNORED else (group, plural)


def counted_names(kind: GroupResource) -> tuple[str, ...]:
    """The resource names that count the objects of a kind."""
    group, plural = kind
    if group:
        return (f"{COUNT}{plural}.{group}",)
    return (f"{COUNT}{plural}", plural) if plural in _PLAIN else (f"{COUNT}{plural}",)


def asks_for_devices(names: Iterable[str]) -> bool:
    """Whether a quota limits extended resources, which may be backed by device classes."""
    return any(map(devices.is_extended, names))


# -- one object


def measure(kind: GroupResource, obj: Object, now: datetime, features: Features) -> tuple[Profile, Amounts]:
    """(the scopes of an object, its usage). Amounts that cannot be parsed are left out."""
    evaluator, doc = EVALUATORS[kind], _document(obj)
    _leave_out(doc, kind, features)
    try:
        profile, usage = evaluator.profile(doc), evaluator.usage(doc, now)
    except FormatError:
        doc = _readable(doc)
        if overdue_from(obj) is None:
            doc["metadata"].pop("deletionTimestamp", None)
        profile, usage = evaluator.profile(doc), evaluator.usage(doc, now)
    return (profile if kind == POD_KIND or features.attributes_class else NOWHERE), usage


def _leave_out(doc: Tree, kind: GroupResource, features: Features) -> None:
    """Remove fields from a document that do not count because their gates are off."""
    if kind == POD_KIND:
        if not features.pod_level_resources:
            doc["spec"].pop("resources", None)
        if not features.given_to_pods:
            doc["status"].pop("containerStatuses", None)
            doc["status"].pop("initContainerStatuses", None)
    elif kind == CLAIMS_KIND and not features.given_to_claims:
        doc["status"].pop("allocatedResources", None)


def known_scopes(kind: GroupResource, features: Features) -> frozenset[str]:
    """The scopes that apply to a kind."""
    return EVALUATORS[kind].scopes if kind == POD_KIND or features.attributes_class else frozenset()


def _document(obj: Any) -> Tree:
    """The fields of an object that its measure reads."""
    found: Tree = {"metadata": msgspec.to_builtins(obj.metadata), "spec": msgspec.to_builtins(obj.spec)}
    status = getattr(obj, "status", None)
    if status is not None:
        found["status"] = msgspec.to_builtins(status)
    return found


def _readable(doc: Any) -> Any:
    """The document without quantities that cannot be parsed."""
    if isinstance(doc, list | tuple):
        return [_readable(each) for each in doc]
    if not isinstance(doc, dict):
        return doc
    found = {key: _readable(value) for key, value in doc.items()}
    for key in _RESOURCE_LISTS & found.keys():
        if isinstance(found[key], Mapping):
            found[key] = {name: amount for name, amount in found[key].items() if is_quantity(str(amount).strip())}
    return found


def frees(old: Object, new: Object, now: datetime) -> bool:
    """Whether an update may reduce a usage, or move it to another quota: pods that have ended, got a deadline or were
    resized, or whose resize was refused, Services of another type or with other node ports, claims of another size or
    class."""
    if isinstance(old, Pod) and isinstance(new, Pod):
        deadlines = old.spec.active_deadline_seconds, new.spec.active_deadline_seconds
        if pod_usage.terminating(deadlines[0]) != pod_usage.terminating(deadlines[1]):
            return True
        return _resources(old) != _resources(new) or (_alive(old, now) and not _alive(new, now))
    if isinstance(old, Service) and isinstance(new, Service):
        usage_of = EVALUATORS[SERVICES_KIND].usage
        return usage_of(_document(old), now) != usage_of(_document(new), now)
    if isinstance(old, PersistentVolumeClaim) and isinstance(new, PersistentVolumeClaim):
        return _claim_size(old) != _claim_size(new) or attribute_classes(_document(old)) != attribute_classes(
            _document(new)
        )
    return False


def _alive(pod: Pod, now: datetime) -> bool:
    meta = pod.metadata
    try:
        return pod_usage.alive(pod.status.phase, meta.deletion_timestamp, meta.deletion_grace_period_seconds, now)
    except FormatError:
        return True


def overdue_from(obj: Object) -> float | None:
    """The time (seconds since 1970) at which an object stops being charged without a change; None for never."""
    if not isinstance(obj, Pod):
        return None
    try:
        return pod_usage.overdue_from(obj.metadata.deletion_timestamp, obj.metadata.deletion_grace_period_seconds)
    except FormatError:
        return None


def _resources(pod: Pod) -> list[object]:
    """The resources that a pod requests, those that its node has allocated, and whether it refuses the request."""
    spec, status = pod.spec, pod.status
    asked = [each.resources for each in (*spec.containers, *spec.init_containers)]
    given = [
        (each.name, each.resources, each.allocated_resources)
        for each in (*status.container_statuses, *status.init_container_statuses)
    ]
    return [is_refused((each.type, each.reason) for each in status.conditions), spec.resources, *asked, *given]


def _claim_size(claim: PersistentVolumeClaim) -> tuple[str | None, str | None]:
    asked = claim.spec.resources.requests if claim.spec.resources is not None else None
    return (asked or {}).get("storage"), (claim.status.allocated_resources or {}).get("storage")


# -- one quota


def usage(hard: Iterable[str], measured: Iterable[tuple[frozenset[str], Amounts]]) -> dict[str, Quantity]:
    """The usage of the resource names that a quota limits.

    measured: for each kind the names that it covers, and its usage. Usages of several kinds for one name are added.
    """
    names = frozenset(hard)
    covered: frozenset[str] = frozenset()
    total: dict[str, Quantity] = {}
    for about, amounts in measured:
        covered |= about
        for name, amount in amounts.items():
            if name in names:
                total[name] = total[name] + amount if name in total else amount
    return {name: total.get(name, ZERO) for name in sorted(names & covered)}


def not_less(used: dict[str, Quantity], before: Mapping[str, str], names: Collection[str]) -> dict[str, Quantity]:
    """The usage, with these names at least as high as before, because objects that cannot be decoded use them."""
    kept = {name: parse(before[name]) for name in names if name in used and is_quantity(before.get(name, ""))}
    return used | {name: amount for name, amount in kept.items() if amount > used[name]}


def count_of(kind: GroupResource, found: int, *, scoped: bool) -> Amounts:
    """The number of objects of a kind, by its resource names; 0 for a quota with scopes, which counted objects are not
    in."""
    return dict.fromkeys(counted_names(kind), make(0 if scoped else found))


def is_urgent(quota: ResourceQuota, classes: DeviceClasses) -> bool:
    """Whether a quota cannot be enforced yet: its status lacks a limit, or the usage of a limit that is measured or
    counted."""
    hard, status = quota.spec.hard or {}, quota.status
    if not _same(hard, status.hard or {}):
        return True
    missing = [name for name in status.hard or {} if name not in (status.used or {})]
    return any(plan_kinds(missing, classes))


def status(quota: ResourceQuota, used: dict[str, Quantity]) -> ResourceQuotaStatus | None:
    """The status to write; None if it is up to date. Names that are not measured keep their amounts."""
    hard = quota.spec.hard or {}
    before = {name: value for name, value in (quota.status.used or {}).items() if name in hard}
    after = before | {name: str(amount) for name, amount in used.items()}
    current = quota.status.used
    known = quota.status.hard
    if current is not None and known is not None and _same(known, hard) and _same(current, after):
        return None
    return ResourceQuotaStatus(hard=quota.spec.hard, used=after)


def _same(left: Mapping[str, str], right: Mapping[str, str]) -> bool:
    """Whether two resource lists are equal, whatever the notation of their quantities."""
    return left.keys() == right.keys() and all(_equal(left[name], right[name]) for name in left)


def _equal(one: str, other: str) -> bool:
    return one == other or (is_quantity(one) and is_quantity(other) and parse(one) == parse(other))
