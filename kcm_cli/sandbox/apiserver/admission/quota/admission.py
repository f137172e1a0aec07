"""ResourceQuota: rejects writes that would exceed a quota, and adds others to its used resources.

There is no await between check and update, so concurrent writes cannot exceed a quota together. If the write fails
afterwards, the quota is wrong until the quota controller recalculates it, as in upstream.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery.quantity import ZERO
from kcm_cli.planning.pod_resources import Amounts, amounts_of
from kcm_cli.planning.quota.devices import CLAIM_KIND
from kcm_cli.planning.quota.evaluators import EVALUATORS, Evaluator, object_count
from kcm_cli.planning.quota.scopes import Requirement
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.admission.quota.devices import Devices
from kcm_cli.sandbox.apiserver.registry.own_writes import OwnWrites
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

QUOTAS = GVR("", "v1", "resourcequotas")
_IGNORED_GROUPS = frozenset({"authentication.k8s.io", "authorization.k8s.io"})
_IGNORED = frozenset({"events", "bindings", "componentstatuses"})


_counter = lru_cache(1024)(object_count)


class _Charge(msgspec.Struct, frozen=True):
    """The used resources of a quota after a write."""

    quota: Stored
    used: Amounts


class ResourceQuotas:
    """See the module."""

    def __init__(self, store: Store, clock: Clock, own: OwnWrites) -> None:
        self._own = own
        self._clock = clock
        self._quotas = Lister(store, QUOTAS)
        self._devices = Devices(store)

    # atomic: no await
    def validate(self, attrs: Attributes) -> None:
        """Check and charge a write. Raises ApiError 403."""
        namespace = attrs.namespace
        if not namespace or self._quotas.empty(namespace) or not attrs.resource.namespaced:
            return
        evaluator = self._evaluator(attrs)
        if evaluator is None or not evaluator.counts(attrs):
            return
        charges = self._charges(attrs, evaluator)
        if attrs.dry_run:
            return
        for charge in charges:
            self._write(charge)

    def _evaluator(self, attrs: Attributes) -> Evaluator | None:
        gvr = attrs.resource.gvr
        key = (gvr.group, gvr.plural)
        if gvr.group in _IGNORED_GROUPS or (gvr.plural in _IGNORED and gvr.group in ("", "events.k8s.io")):
            return None
        found = EVALUATORS.get(key) or _counter(*key)
        if key == CLAIM_KIND:
            return self._with_devices(attrs.namespace, found)
        return found

    def _with_devices(self, namespace: str, claims: Evaluator) -> Evaluator:
        """The evaluator of claims, including the extended resources of device classes."""
        known = self._devices
        return replace(
            claims,
            covers=lambda name: claims.covers(name) or known.covers(name),
            usage=lambda doc, now: known.with_extended(doc, namespace, claims.usage(doc, now), now),
        )

    def _charges(self, attrs: Attributes, evaluator: Evaluator) -> list[_Charge]:
        """The charges of a write. Raises ApiError 403 if a quota is exceeded."""
        doc: Tree = attrs.obj or {}
        quotas = [stored for stored in self._quotas.of(attrs.namespace) if _applies(stored.doc, evaluator, doc)]
        for stored in quotas:
            _check_known(attrs, evaluator, stored, doc)
        if not quotas:
            return []
        now = self._clock.now()
        usage = evaluator.usage(doc, now)
        negative = sorted(name for name, amount in usage.items() if amount.sign < 0)
        if negative:
            raise denied(attrs, f"quota usage is negative for resource(s): {','.join(negative)}")
        before = evaluator.usage(attrs.old, now) if attrs.operation == "UPDATE" and attrs.old else None
        charges: list[_Charge] = []
        for stored in quotas:
            delta = usage
            if before is not None and _applies(stored.doc, evaluator, attrs.old or {}):
                delta = _increase(usage, before)
            delta = {name: amount for name, amount in delta.items() if amount}
            if delta:
                charges.append(_Charge(stored, _charged(attrs, stored, delta)))
        return charges

    def _write(self, charge: _Charge) -> None:
        stored = charge.quota
        status: Tree = stored.doc["status"]  # type: ignore[assignment]  # a quota that is meant has a status
        used = {name: str(amount) for name, amount in charge.used.items()}
        if used == status["used"]:
            return
        doc: Tree = stored.copy()
        doc["status"]["used"] = used
        self._own.update_status(QUOTAS, stored, doc)


def _hard(quota: Tree) -> Mapping[str, object]:
    return (quota.get("status") or {}).get("hard") or {}


def _applies(quota: Tree, evaluator: Evaluator, doc: Tree) -> bool:
    """Whether a quota applies to an object."""
    if not any(evaluator.covers(name) for name in _hard(quota)):
        return False
    return evaluator.in_scope(doc, _requirements(quota))


def _requirements(quota: Tree) -> Iterable[Requirement]:
    spec: Tree = quota.get("spec") or {}
    for scope in spec.get("scopes") or ():
        yield Requirement(scope)
    for term in (spec.get("scopeSelector") or {}).get("matchExpressions") or ():
        yield Requirement(term.get("scopeName", ""), term.get("operator", ""), tuple(term.get("values") or ()))


def _check_known(attrs: Attributes, evaluator: Evaluator, stored: Stored, doc: Tree) -> None:
    """The object must specify what the quota restricts, and the quota must have used values. Raises ApiError 403."""
    quota: Tree = stored.doc
    restricted = sorted(name for name in _hard(quota) if evaluator.covers(name))
    if why := evaluator.problem(doc, restricted):
        raise denied(attrs, f"failed quota: {stored.name}: {why}")
    used = quota["status"].get("used") or {}
    if any(name not in used for name in restricted):
        why = f"status unknown for quota: {stored.name}, resources: {','.join(restricted)}"
        raise denied(attrs, why)


def _increase(usage: Amounts, before: Amounts) -> Amounts:
    return {name: max(ZERO, amount - before.get(name, ZERO)) for name, amount in usage.items()}


def _charged(attrs: Attributes, stored: Stored, delta: Amounts) -> Amounts:
    """The used resources after a write. Raises ApiError 403 if they exceed the quota."""
    status: Tree = stored.doc["status"]  # type: ignore[assignment]  # a quota that is meant has a status
    hard, used = amounts_of(status.get("hard")), amounts_of(status.get("used"))
    requested = {name: amount for name, amount in delta.items() if name in hard}
    total = dict(used)
    for name, amount in requested.items():
        total[name] = total[name] + amount if name in total else amount
    exceeded = sorted(name for name in requested if total[name] > hard[name])
    if exceeded and attrs.subresource != "status":
        raise denied(
            attrs,
            f"exceeded quota: {stored.name}, requested: {_shown(requested, exceeded)}, "
            f"used: {_shown(used, exceeded)}, limited: {_shown(hard, exceeded)}",
        )
    return total


def _shown(amounts: Amounts, names: Iterable[str]) -> str:
    return ",".join(f"{name}={amounts[name]}" for name in names if name in amounts)
