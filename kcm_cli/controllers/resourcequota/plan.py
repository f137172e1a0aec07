"""How much of a quota is used.

upstream: pkg/controller/resourcequota/resource_quota_controller.go#syncResourceQuota
"""

from collections.abc import Iterable
from datetime import datetime

from kcm_cli.api.core import Pod, ResourceQuota, ResourceQuotaStatus
from kcm_cli.controllers.resourcequota.snapshot import GroupResource, Snapshot
from kcm_cli.machinery.quantity import ZERO, Quantity, make, parse
from kcm_cli.planning.pod_totals import Tree
from kcm_cli.planning.quota import pod_usage
from kcm_cli.planning.quota.evaluators import EVALUATORS, Evaluator

COUNT = "count/"
_PLAIN = ("configmaps", "resourcequotas", "replicationcontrollers", "secrets")


def kinds(quota: ResourceQuota) -> tuple[set[GroupResource], set[GroupResource]]:
    """The kinds that a quota measures, and those that it only counts."""
    hard = quota.spec.hard or {}
    measured = {kind for kind, evaluator in EVALUATORS.items() if any(map(evaluator.covers, hard))}
    counted = {kind for name in hard if (kind := _counted(name)) is not None and kind not in EVALUATORS}
    return measured, counted


def _counted(name: str) -> GroupResource | None:
    if name in _PLAIN:
        return "", name
    if not name.startswith(COUNT):
        return None
    plural, _, group = name.removeprefix(COUNT).partition(".")
    return group, plural


def usage(snapshot: Snapshot, now: datetime) -> dict[str, Quantity]:
    """What is used of everything that the quota limits; 0 where nothing is."""
    hard = snapshot.quota.spec.hard or {}
    total: dict[str, Quantity] = {}
    for kind, docs in snapshot.measured.items():
        evaluator = EVALUATORS[kind]
        known = {name: ZERO for name in hard if evaluator.covers(name)}
        for name, amount in _measured(evaluator, snapshot.quota, docs, now):
            known[name] = known.get(name, ZERO) + amount
        total |= known
    scoped = bool(_requirements(snapshot.quota))  # what is only counted is in no scope
    for (group, plural), found in snapshot.counted.items():
        count = make(0 if scoped else found)
        name = f"{COUNT}{plural}.{group}" if group else f"{COUNT}{plural}"
        total |= {name: count} | ({plural: count} if not group and plural in _PLAIN else {})
    return {name: amount for name, amount in total.items() if name in hard}


def _measured(
    evaluator: Evaluator, quota: ResourceQuota, docs: Iterable[Tree], now: datetime
) -> Iterable[tuple[str, Quantity]]:
    requirements = _requirements(quota)
    for doc in docs:
        if all(evaluator.in_scope(doc, requirement) for requirement in requirements):
            yield from evaluator.usage(doc, now).items()


def _requirements(quota: ResourceQuota) -> list[Tree]:
    found: list[Tree] = [{"scopeName": scope, "operator": "Exists"} for scope in quota.spec.scopes]
    selector = quota.spec.scope_selector
    for term in selector.match_expressions if selector is not None else ():
        found.append({"scopeName": term.scope_name, "operator": term.operator, "values": list(term.values)})
    return found


def frees(old: Pod, new: Pod, now: datetime) -> bool:
    """Whether a pod may count for less, or in other scopes, than before: over, given a deadline, or resized."""
    if pod_usage.terminating(old.spec.active_deadline_seconds) != pod_usage.terminating(
        new.spec.active_deadline_seconds
    ):
        return True
    if _alive(old, now) and not _alive(new, now):
        return True
    return _resources(old) != _resources(new)


def _alive(pod: Pod, now: datetime) -> bool:
    meta = pod.metadata
    return pod_usage.alive(pod.status.phase, meta.deletion_timestamp, meta.deletion_grace_period_seconds, now)


def _resources(pod: Pod) -> list[object]:
    """What a pod asks for and what its node has given it."""
    spec, status = pod.spec, pod.status
    asked = [each.resources for each in (*spec.containers, *spec.init_containers)]
    given = [(each.name, each.resources) for each in (*status.container_statuses, *status.init_container_statuses)]
    return [spec.resources, *asked, *given]


def new_status(quota: ResourceQuota, used: dict[str, Quantity]) -> ResourceQuotaStatus | None:
    """The status to write; None if it says so already. Names that nobody measures keep what was known of them."""
    hard = quota.spec.hard or {}
    before = {name: value for name, value in (quota.status.used or {}).items() if name in hard}
    after = before | {name: str(amount) for name, amount in used.items()}
    current = quota.status.used
    if current is not None and quota.status.hard == quota.spec.hard and _same(current, after):
        return None
    return ResourceQuotaStatus(hard=quota.spec.hard, used=after)


def _same(left: dict[str, str], right: dict[str, str]) -> bool:
    """Whether two lists of amounts are equal, however they are written."""
    return left.keys() == right.keys() and all(parse(left[name]) == parse(right[name]) for name in left)
