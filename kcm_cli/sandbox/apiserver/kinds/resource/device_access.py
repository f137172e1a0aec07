"""Authorization of admin access to devices, of the allocation of claims, and of the status of devices.

Upstream's strategies read the namespace and the user's permissions during validation.

upstream: pkg/registry/resource/utils.go
"""

from msgspec.structs import replace

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.security.authorizer import refusal
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, RequestInfo, Tree
from kcm_cli.sandbox.apiserver.validation import errors

LABEL = "resource.kubernetes.io/admin-access"
_NAMESPACES = GVR("", "v1", "namespaces")
_NODE_NAME = "authentication.kubernetes.io/node-name"
_ACCOUNT = "system:serviceaccount:"
_NEEDED = f"admin access to devices requires the `{LABEL}: true` label on the containing namespace"


def of_claim(core: Core, call: Call, new: Tree, old: Tree | None) -> Errors:
    """The errors of a new claim, or of a change of its status."""
    return _of_spec(core, call, new.get("spec") or {}) if old is None else _of_status(core, call, new, old)


def of_template(core: Core, call: Call, new: Tree, old: Tree | None) -> Errors:
    """The errors of a new template."""
    return _of_spec(core, call, (new.get("spec") or {}).get("spec") or {})


def _of_spec(core: Core, call: Call, spec: Tree) -> Errors:
    for index, request in enumerate((spec.get("devices") or {}).get("requests") or ()):
        if (request.get("exactly") or {}).get("adminAccess"):
            return _labelled(core, call, f"spec.devices.requests[{index}].adminAccess")
    return ()


def _of_status(core: Core, call: Call, new: Tree, old: Tree) -> list[FieldError]:
    now, before = new.get("status") or {}, old.get("status") or {}
    found: list[FieldError] = []
    index = _admin_result(now)
    if index is not None and _admin_result(before) is None:
        found += _labelled(core, call, f"status.allocation.devices.results[{index}].adminAccess")
    if any(now.get(field) != before.get(field) for field in ("allocation", "reservedFor")):
        found += _may_bind(core, call)
    if now.get("allocation") is not None:
        for driver in _touched_drivers(now, before):
            found += _check_driver_access(core, call, driver, _node_of(now["allocation"]))
    return found


def _labelled(core: Core, call: Call, path: str) -> list[FieldError]:
    stored = core.store.get(_NAMESPACES, "", call.namespace)
    metadata: Tree = stored.doc["metadata"] if stored is not None else {}  # type: ignore[assignment]
    labels = metadata.get("labels") or {}
    return [] if labels.get(LABEL) == "true" else [errors.forbidden(path, _NEEDED)]


def _admin_result(status: Tree) -> int | None:
    """The index of the first allocated device with admin access."""
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    return next((index for index, result in enumerate(results) if result.get("adminAccess")), None)


def _may_bind(core: Core, call: Call) -> list[FieldError]:
    info = replace(call.info, subresource="binding", namespace="", name="")
    problem = _problem(core, call, info)
    if not problem:
        return []
    what = f'resource="resourceclaims/binding", verb="{info.verb}" permission'
    detail = f"changing status.allocation or status.reservedFor requires {what}: {problem}"
    return [errors.forbidden("status.allocation", detail)]


def _check_driver_access(core: Core, call: Call, driver: str, node: str) -> list[FieldError]:
    """The errors of a user who may not write a driver's device status. A driver on the devices' node needs permission
    for its node only.
    """
    verbs = [f"arbitrary-node:{call.info.verb}"]
    if node and call.user.name.startswith(_ACCOUNT) and [*call.user.extra.get(_NODE_NAME, ())] == [node]:
        verbs.insert(0, f"associated-node:{call.info.verb}")
    problems = [
        _problem(core, call, replace(call.info, subresource="driver", name=driver, verb=verb)) for verb in verbs
    ]
    if not all(problems):
        return []
    shown = " ".join(verbs)
    what = f'changing status.devices requires resource="resourceclaims/driver", verb="[{shown}]"'
    return [errors.forbidden("status.devices", f"{what} permission: {problems[0]}")]


def _problem(core: Core, call: Call, info: RequestInfo) -> str:
    decision = core.security.authorizer.authorize(call.user, info)
    return "" if decision.allowed else str(refusal(call.user, info, decision.reason))


def _touched_drivers(now: Tree, before: Tree) -> list[str]:
    """The drivers whose device status has changed."""
    after, known = _by_device(now), _by_device(before)
    changed = {key for key in after.keys() | known.keys() if after.get(key) != known.get(key)}
    return sorted({str(key[0]) for key in changed})


def _by_device(status: Tree) -> dict[tuple[object, ...], Tree]:
    fields = ("driver", "pool", "device", "shareID")
    return {tuple(device.get(field) for field in fields): device for device in status.get("devices") or ()}


def _node_of(allocation: Tree) -> str:
    """The only node of an allocation, or empty."""
    terms = (allocation.get("nodeSelector") or {}).get("nodeSelectorTerms") or []
    if len(terms) != 1 or terms[0].get("matchExpressions") or len(terms[0].get("matchFields") or ()) != 1:
        return ""
    field = terms[0]["matchFields"][0]
    values = field.get("values") or []
    named = field.get("key") == "metadata.name" and field.get("operator") == "In" and len(values) == 1
    return values[0] if named else ""
