"""Binding, a request to bind a pod to a node. It is not stored.

upstream: pkg/registry/core/pod/storage/storage.go (v1.36)
"""

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import names
from kcm_cli.machinery.errors import aggregated
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.errors import bad_request, conflict, not_found, plain, storage_conflict
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Kind
from kcm_cli.sandbox.apiserver.registry.objects import wipe_system_fields
from kcm_cli.sandbox.apiserver.registry.options import write_options
from kcm_cli.sandbox.apiserver.registry.unstored import mutated, received, track
from kcm_cli.sandbox.apiserver.schema import Target
from kcm_cli.sandbox.apiserver.store import Conflict, NotFound, Stored
from kcm_cli.sandbox.apiserver.types import ApiError, ResourceInfo, Tree

PODS = GVR("", "v1", "pods")
_BINDING = Target("", "v1", "Binding")
_BINDINGS = ResourceInfo(GVR("", "v1", "bindings"), "Binding", "binding", True, frozenset(["create"]))
DONE: Tree = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


async def bind(core: Core, call: Call) -> Response:
    """POST .../pods/NAME/binding, or .../bindings. Raises ApiError."""
    options = write_options("CreateOptions", call.request, call.query)
    binding = received(core, call, options, _BINDING)
    if not call.name:
        wipe_system_fields(binding["metadata"])  # .../bindings has no preconditions
    track(core, call, options, binding, _BINDINGS)
    attrs = await mutated(core, call, options, call.name or binding["metadata"].get("name") or "", binding)
    meta, target = binding["metadata"], binding.get("target") or {}
    name = call.name or meta.get("name") or ""
    if name != (meta.get("name") or ""):
        raise bad_request("name in URL does not match name in Binding object")
    _check_target(target)
    if not name:
        raise bad_request("Name parameter required.")
    await core.admission.validate(attrs)
    pods = core.catalog.info(PODS)
    while True:
        current = core.store.get(PODS, call.namespace, name)
        if current is None:
            raise not_found(*pods.named, name)
        doc = _bound(core, current, meta, target["name"], dry_run=options.dry_run)
        if options.dry_run:
            break
        try:
            core.store.update(PODS, call.namespace, name, doc, current.revision, always=True)
            break
        except (Conflict, NotFound):
            continue
    return call.media.document(201, DONE)


def _bound(core: Core, current: Stored, meta: Tree, node: str, *, dry_run: bool) -> Tree:
    """The bound pod. Shares unchanged parts with the stored document. Raises ApiError 409."""
    old: Tree = current.doc
    name, spec, known = current.name, {**old["spec"]}, {**old["metadata"]}
    _check_identity(core, current, meta, known, dry_run=dry_run)
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
    set_condition(status, {"type": "PodScheduled", "status": "True"}, format_time(core.clock.now()))
    return {**old, "metadata": known, "spec": spec, "status": status}


def _check_identity(core: Core, current: Stored, meta: Tree, known: Tree, *, dry_run: bool) -> None:
    """Check the preconditions (uid, resourceVersion) of a binding. Raises ApiError 409."""
    pods = core.catalog.info(PODS)
    for what, asked, found in (
        ("UID", meta.get("uid"), known["uid"]),
        ("ResourceVersion", meta.get("resourceVersion"), str(current.revision)),
    ):
        if not asked or asked == found:
            continue
        key = core.storage_key(pods, current.key, dry_run=dry_run)
        raise storage_conflict(pods, current.name, key, what, asked, found)


def set_condition(status: Tree, condition: Tree, now: str) -> None:
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


def _check_target(target: Tree) -> None:
    problems = []
    if target.get("kind") not in (None, "", "Node"):
        problems.append(f'target.kind: Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"')
    if not target.get("name"):
        problems.append("target.name: Required value")
    else:  # upstream, since 1.37: kubernetes#136723
        name = target["name"]
        problems += [f"target.name: Invalid value: {quote(name)}: {why}" for why in names.dns1123_subdomain(name)]
    if problems:
        raise plain(aggregated(problems))


def _unbindable(name: str, why: str) -> ApiError:
    return conflict("", "pods/binding", name, why)


KIND = Kind("", "bindings", handlers={"": bind})
