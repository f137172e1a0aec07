"""Bindings of pods to nodes, and evictions, which respect PodDisruptionBudgets.

upstream: pkg/registry/core/pod/storage/{storage,eviction}.go (v1.36)
"""

import msgspec
from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.errors import bad_request, conflict, forbidden, plain
from kcm_cli.sandbox.apiserver.registry import errors as api_errors
from kcm_cli.sandbox.apiserver.registry import objects
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.registry.deleting import Deleter
from kcm_cli.sandbox.apiserver.registry.options import (
    DeleteOptions,
    Preconditions,
    WriteOptions,
    check_delete_options,
    write_options,
)
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.store import Conflict, NotFound, Stored
from kcm_cli.sandbox.apiserver.trees import is_true
from kcm_cli.sandbox.apiserver.types import ApiError, Attributes, ResourceInfo, Tree
from kcm_cli.sandbox.apiserver.validation.labels import compile_selector

PODS = GVR("", "v1", "pods")
BUDGETS = GVR("policy", "v1", "poddisruptionbudgets")
_BINDING, _EVICTION = Target("", "v1", "Binding"), Target("policy", "v1", "Eviction", older=("v1beta1",))
_EVICTIONS = ResourceInfo(GVR("policy", "v1", "evictions"), "Eviction", "eviction", True, frozenset(["create"]))
_MOST_DISRUPTED = 2000
_ENDED = ("Succeeded", "Failed")
_DONE: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


STORAGE_S = 0.02
"""The latency of a write to a real server's storage. An eviction has two writes, and the disruption controller sees the
first one before the client has its response."""


class PodWrites:
    """Handles create of bindings and evictions."""

    def __init__(self, core: Core, deleter: Deleter) -> None:
        self._core = core
        self._deleter = deleter

    async def bind(self, call: Call) -> Response:
        """POST .../pods/NAME/binding, or .../bindings. Raises ApiError."""
        options = write_options("CreateOptions", call.request, call.query)
        binding = self._decoded(call, _BINDING, options.validation)
        meta, target = binding["metadata"], binding.get("target") or {}
        name = call.name or meta.get("name") or ""
        if name != (meta.get("name") or ""):
            raise bad_request("name in URL does not match name in Binding object")
        _check_target(target)
        if not name:
            raise bad_request("Name parameter required.")
        await self._admit(call, "binding", name, binding, options)
        while True:
            current = self._core.store.get(PODS, call.namespace, name)
            if current is None:
                raise api_errors.not_found(self._pods(), name)
            doc = self._bound(current, meta, target["name"], dry_run=options.dry_run)
            if options.dry_run:
                break
            try:
                self._core.store.update(PODS, call.namespace, name, doc, current.revision, always=True)
                break
            except (Conflict, NotFound):
                continue
        return call.media.document(201, _DONE)

    def _bound(self, current: Stored, meta: Tree, node: str, *, dry_run: bool) -> Tree:
        """The bound pod. Shares unchanged parts with the stored document. Raises ApiError 409."""
        old: Tree = current.doc
        name, spec, known = current.name, {**old["spec"]}, {**old["metadata"]}
        self._check_identity(current, meta, known, dry_run=dry_run)
        if known.get("deletionTimestamp"):
            raise _unbindable(name, f"pod {name} is being deleted, cannot be assigned to a host")
        if spec.get("nodeName"):
            raise _unbindable(name, f'pod {name} is already assigned to node "{spec["nodeName"]}"')
        if spec.get("schedulingGates"):
            raise _unbindable(name, f"pod {name} has non-empty .spec.schedulingGates")
        spec["nodeName"] = node
        for field in ("annotations", "labels"):
            if meta.get(field):
                known[field] = {**(known.get(field) or {}), **meta[field]}
        status: Tree = {**old.get("status", {})}
        status.pop("nominatedNodeName", None)
        _set_condition(status, {"type": "PodScheduled", "status": "True"}, format_time(self._core.clock.now()))
        return {**old, "metadata": known, "spec": spec, "status": status}

    def _check_identity(self, current: Stored, meta: Tree, known: Tree, *, dry_run: bool) -> None:
        """Check the preconditions (uid, resourceVersion) of a binding. Raises ApiError 409."""
        for what, asked, found in (
            ("UID", meta.get("uid"), known["uid"]),
            ("ResourceVersion", meta.get("resourceVersion"), str(current.revision)),
        ):
            if not asked or asked == found:
                continue
            key = objects.storage_key(self._pods(), current.key, dry_run=dry_run)
            raise api_errors.storage_conflict(self._pods(), current.name, key, what, asked, found)

    async def evict(self, call: Call) -> Response:
        """POST .../pods/NAME/eviction. Raises ApiError."""
        options = write_options("CreateOptions", call.request, call.query)
        eviction = self._decoded(call, _EVICTION, options.validation)
        now = self._core.clock.now()
        self._core.patching.track_update(
            self._core.patching.place(_EVICTIONS, call.subresource), None, eviction, options.manager, now
        )
        if (eviction["metadata"].get("name") or "") != call.name:
            raise bad_request("name in URL does not match name in Eviction object")
        wanted = msgspec.convert(eviction.get("deleteOptions") or {}, DeleteOptions)
        if options.dry_run and not wanted.dry_run:
            wanted.dry_run = ["All"]
        await self._admit(call, "eviction", call.name, eviction, options)
        pod = self._core.store.get(PODS, call.namespace, call.name)
        if pod is None:
            raise api_errors.not_found(self._pods(), call.name)
        check_delete_options(wanted)
        if not _ignores_budgets(pod.doc):
            error = await self._charge(call, pod, wanted)
            if error is not None:
                return call.media.document(error.code, error.status)
            if not wanted.dry:
                await self._core.clock.sleep(STORAGE_S)
        await self._remove(call, wanted)
        return call.media.document(201, _DONE)

    async def _charge(self, call: Call, pod: Stored, wanted: DeleteOptions) -> ApiError | None:
        """Count the eviction in the pod's budget. Raises ApiError 403, 429; returns a 500, as upstream."""
        budgets = self._budgets(pod)
        if len(budgets) > 1:
            return ApiError(
                500,
                "",
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            )
        if not budgets:
            return None
        budget: Tree = budgets[0].doc
        if not is_true(pod.doc, "Ready") and _spares_unready(budget):
            wanted.preconditions = wanted.preconditions or Preconditions()
            wanted.preconditions.resourceVersion = wanted.preconditions.resourceVersion or str(pod.revision)
            return None
        # atomic: no await between reading the budget and writing its new count
        changed = self._decremented(budgets[0], pod.name)
        if not wanted.dry:
            gvr = BUDGETS
            self._core.store.update(gvr, call.namespace, budgets[0].name, changed, budgets[0].revision)
        return None

    def _budgets(self, pod: Stored) -> list[Stored]:
        meta: Tree = pod.doc["metadata"]  # type: ignore[assignment]  # every stored object has metadata
        found: dict[str, str] = meta.get("labels") or {}
        return [one for one in self._core.store.scan(BUDGETS, pod.namespace) if _selects(one.doc, found)]

    def _decremented(self, stored: Stored, pod: str) -> Tree:
        """The budget with one allowed disruption less. Raises ApiError 403, 429."""
        budget: Tree = stored.copy()
        name, status = stored.name, budget.setdefault("status", {})
        if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
            message = f"The disruption budget {name} is still being processed by the server."
            raise _too_many(message, retry_after_s=10)
        allowed = status.get("disruptionsAllowed", 0)
        if allowed < 0:
            raise forbidden("policy", "poddisruptionbudget", name, "pdb disruptions allowed is negative")
        if len(status.get("disruptedPods") or {}) > _MOST_DISRUPTED:
            why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
            raise forbidden("policy", "poddisruptionbudget", name, why)
        if allowed == 0:
            raise _too_many(_why_not(name, status))
        now = format_time(self._core.clock.now())
        status["disruptionsAllowed"] = allowed - 1
        if allowed == 1:
            _refuse_further(status, budget["metadata"].get("generation", 0), now)
        status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod: now}
        return budget

    async def _remove(self, call: Call, wanted: DeleteOptions) -> None:
        """Mark the pod as disrupted and delete it. Raises ApiError."""
        if not wanted.dry:
            stored = self._marked(call, wanted)
            if wanted.preconditions is not None and wanted.preconditions.resourceVersion is not None:
                wanted.preconditions.resourceVersion = str(stored.revision)
        one = replace(call, info=replace(call.info, verb="delete", subresource=""))
        await self._deleter.remove(one, wanted, admit=False)

    def _marked(self, call: Call, wanted: DeleteOptions) -> Stored:
        current = self._core.store.get(PODS, call.namespace, call.name)
        if current is None:
            raise api_errors.not_found(self._pods(), call.name)
        pod: Tree = current.copy()
        self._deleter.check_preconditions(call, wanted, pod["metadata"])
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "EvictionByEvictionAPI",
            "message": "Eviction API: evicting",
        }
        _set_condition(pod.setdefault("status", {}), condition, format_time(self._core.clock.now()))
        return self._core.store.update(PODS, call.namespace, call.name, pod, current.revision)

    def _decoded(self, call: Call, target: Target, validation: str) -> Tree:
        doc: Tree
        doc, warnings = self._core.schemas.decode_body(
            call.resource, call.request.body, call.content_type, validation, target=target
        )
        call.warnings += warnings
        meta: Tree = doc.setdefault("metadata", {})
        objects.match_namespace(meta, call.namespace)
        return doc

    async def _admit(self, call: Call, subresource: str, name: str, doc: Tree, options: WriteOptions) -> None:
        attrs = Attributes(
            "CREATE", self._pods(), subresource, call.namespace, name, call.user, doc, None,
            options.dry_run, options.document("CreateOptions"), call.warnings,
        )  # fmt: skip
        await self._core.admission.mutate(attrs)
        await self._core.admission.validate(attrs)

    def _pods(self) -> ResourceInfo:
        served = self._core.catalog.by_gvr(PODS)
        assert served is not None
        return served.info


def _check_target(target: Tree) -> None:
    problems = []
    if target.get("kind") not in (None, "", "Node"):
        problems.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        problems.append("target.name: Required value")
    if problems:
        raise plain(problems[0] if len(problems) == 1 else "[" + ", ".join(problems) + "]")


def _unbindable(name: str, why: str) -> ApiError:
    return conflict("", "pods/binding", name, why)


def _set_condition(status: Tree, condition: Tree, now: str) -> None:
    """Add or replace a condition of a pod. lastTransitionTime changes only with the status."""
    known: list[Tree] = status.get("conditions") or []
    entry = {"lastProbeTime": None, "lastTransitionTime": now, **condition}
    for index, one in enumerate(known):
        if one["type"] == condition["type"]:
            if one.get("status") == condition["status"]:
                entry["lastTransitionTime"] = one.get("lastTransitionTime")
            status["conditions"] = [*known[:index], entry, *known[index + 1 :]]
            return
    status["conditions"] = [*known, entry]


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


def _too_many(cause: str, *, retry_after_s: int = 0) -> ApiError:
    details: Tree = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry_after_s:
        details["retryAfterSeconds"] = retry_after_s
    message = "Cannot evict pod as it would violate the pod's disruption budget."
    error = ApiError(429, "TooManyRequests", message, details=details)
    if retry_after_s:
        error.headers["retry-after"] = str(retry_after_s)
    return error
