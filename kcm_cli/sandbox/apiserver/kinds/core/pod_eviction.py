"""Evictions of pods, which respect PodDisruptionBudgets.

upstream: pkg/registry/core/pod/storage/eviction.go (v1.36)
"""

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.errors import bad_request, forbidden, not_found
from kcm_cli.sandbox.apiserver.kinds.core.binding import DONE, PODS, set_condition
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.options import (
    DeleteOptions,
    Preconditions,
    check_delete_options,
    write_options,
)
from kcm_cli.sandbox.apiserver.registry.unstored import mutated, received, track
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.trees import is_true
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.validation.labels import compile_selector

BUDGETS = GVR("policy", "v1", "poddisruptionbudgets")
_EVICTION = Target("policy", "v1", "Eviction", older=("v1beta1",))
_EVICTIONS = ResourceInfo(GVR("policy", "v1", "evictions"), "Eviction", "eviction", True, frozenset(["create"]))
_MOST_DISRUPTED = 2000
_ENDED = ("Succeeded", "Failed")
_SEVERAL = ApiError(
    500, "", "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)
"""A response, not an error: upstream returns this Status."""
STORAGE_S = 0.02
"""The latency of a write to a real server's storage. An eviction has two writes, and the disruption controller sees the
first one before the client has its response."""


async def evict(core: Core, call: Call) -> Response:
    """POST .../pods/NAME/eviction. Raises ApiError."""
    options = write_options("CreateOptions", call.request, call.query)
    eviction = received(core, call, options, _EVICTION)
    track(core, call, options, eviction, _EVICTIONS)
    attrs = await mutated(core, call, options, call.name, eviction)
    if (eviction["metadata"].get("name") or "") != call.name:
        raise bad_request("name in URL does not match name in Eviction object")
    wanted = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
    if options.dry_run and not wanted.dry_run:
        wanted.dry_run = ["All"]
    await core.admission.validate(attrs)
    pod = core.store.get(PODS, call.namespace, call.name)
    if pod is None:
        raise not_found(*call.resource.named, call.name)
    check_delete_options(wanted)
    stated = wanted.preconditions.resourceVersion if wanted.preconditions else None
    spared_by = ""
    if not _ignores_budgets(pod.doc):
        budgets = _budgets(core, pod)
        if len(budgets) > 1:
            return call.media.document(_SEVERAL.code, _SEVERAL.status)
        if budgets and not is_true(pod.doc, "Ready") and _spares_unready(budgets[0].doc):
            spared_by = budgets[0].name
            wanted.preconditions = wanted.preconditions or Preconditions()
            wanted.preconditions.resourceVersion = str(pod.revision)  # the pod may be ready by then
        elif budgets:
            _charge(core, call, budgets[0], wanted)
        if not wanted.dry:
            await core.clock.sleep(STORAGE_S)
    try:
        await _remove(core, call, wanted)
    except ApiError as error:
        if error.code == 409 and spared_by and stated is None:  # the client has stated no version: it tries again
            raise _too_many(_unprocessed(spared_by), retry_after_s=10) from error
        raise
    return call.media.document(201, DONE)


def _charge(core: Core, call: Call, budget: Stored, wanted: DeleteOptions) -> None:
    """Count the eviction in the pod's budget. Raises ApiError 403, 429."""
    # atomic: no await between reading the budget and writing its new count
    changed = _decremented(core, budget, call.name)
    if not wanted.dry:
        core.own.update_status(BUDGETS, budget, changed)


def _budgets(core: Core, pod: Stored) -> list[Stored]:
    meta: Tree = pod.doc["metadata"]  # type: ignore[assignment]  # every stored object has metadata
    found: dict[str, str] = meta.get("labels") or {}
    return [one for one in core.store.scan(BUDGETS, pod.namespace) if _selects(one.doc, found)]


def _decremented(core: Core, stored: Stored, pod: str) -> Tree:
    """The budget with one allowed disruption less. Raises ApiError 403, 429."""
    budget: Tree = stored.copy()
    name, status = stored.name, budget.setdefault("status", {})
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _too_many(_unprocessed(name), retry_after_s=10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed < 0:
        raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
        why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        raise forbidden("policy", "poddisruptionbudget", name, why)
    if allowed == 0:
        raise _too_many(_why_not(name, status))
    now = format_time(core.clock.now())
    status["disruptionsAllowed"] = allowed - 1
    if allowed == 1:
        _refuse_further(status, budget["metadata"].get("generation", 0), now)
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: now}
    return budget


async def _remove(core: Core, call: Call, wanted: DeleteOptions) -> None:
    """Mark the pod as disrupted and delete it. Raises ApiError."""
    deleter = Deleter(core)
    if not wanted.dry:
        stored = _marked(core, deleter, call, _stated(wanted))
        if wanted.preconditions is not None and wanted.preconditions.resourceVersion is not None:
            wanted.preconditions.resourceVersion = str(stored.revision)
    one = replace(call, info=replace(call.info, verb="delete", subresource=""))
    await deleter.remove(one, wanted, admit=False)


def _stated(wanted: DeleteOptions) -> DeleteOptions:
    """The options without empty preconditions, which only the deletion itself heeds."""
    if wanted.preconditions is None:
        return wanted
    uid, version = wanted.preconditions.uid, wanted.preconditions.resourceVersion
    return replace(wanted, preconditions=Preconditions(uid=uid or None, resourceVersion=version or None))


def _marked(core: Core, deleter: Deleter, call: Call, wanted: DeleteOptions) -> Stored:
    current = core.store.get(PODS, call.namespace, call.name)
    if current is None:
        raise not_found(*call.resource.named, call.name)
    pod: Tree = current.copy()
    deleter.check_preconditions(call, wanted, pod["metadata"])
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
    }
    set_condition(pod.setdefault("status", {}), condition, format_time(core.clock.now()))
    return core.store.update(PODS, call.namespace, call.name, pod, current.revision)


def _ignores_budgets(pod: Tree) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in (*_ENDED, "Pending") or bool(pod["metadata"].get("deletionTimestamp"))


def _spares_unready(budget: Tree) -> bool:
    if (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    status = budget.get("status") or {}
    desired: int = status.get("desiredHealthy", 0)
    return desired > 0 and status.get("currentHealthy", 0) >= desired


def _selects(budget: Tree, found: dict[str, str]) -> bool:
    compiled = compile_selector((budget.get("spec") or {}).get("selector"))
    return compiled is not None and compiled.matches(found)


def _why_not(name: str, status: Tree) -> str:
    condition: Tree = next((c for c in status.get("conditions") or () if c["type"] == "DisruptionAllowed"), {})
    message = condition.get("status") == "False" and condition.get("message")
    base = f"The disruption budget {name} does not allow evicting pods currently"
    if message and condition.get("reason") == "SyncFailed":
        return f"{base} because it failed sync: {message}"
    current, desired = status.get("currentHealthy", 0), status.get("desiredHealthy", 0)
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    return f"{base} ({condition.get('reason', '')}): {message}" if message else base


def _refuse_further(status: Tree, generation: int, now: str) -> None:
    known: list[Tree] = status.get("conditions") or []
    entry: Tree = {
        "type": "DisruptionAllowed",
        "status": "False",
        "observedGeneration": generation,
        "lastTransitionTime": now,
        "reason": "InsufficientPods",
        "message": "",
    }
    for one in known:
        if one["type"] == entry["type"] and one.get("status") == "False":
            entry["lastTransitionTime"] = one["lastTransitionTime"]
    status["conditions"] = [one for one in known if one["type"] != entry["type"]] + [entry]


def _unprocessed(name: str) -> str:
    return f"The disruption budget {name} is still being processed by the server."


def _too_many(cause: str, *, retry_after_s: int = 0) -> ApiError:
    details: Tree = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    return ApiError(429, "TooManyRequests", message, details=details)
