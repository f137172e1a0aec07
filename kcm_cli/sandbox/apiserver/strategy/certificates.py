"""Strategies of certificate requests and API services.

Source: pkg/registry/certificates/certificates/strategy.go, kube-aggregator pkg/registry/apiservice/strategy.go.
"""

from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import api_service, certificate_request

_DECIDED = ("Approved", "Denied")
_SERVICE_STATUS_KEEPS = ("labels", "annotations", "finalizers", "ownerReferences")


def _stamp_request(new: Tree, old: Tree | None, context: Context) -> None:
    """Who asks is written by the server."""
    if old is not None:
        return
    spec, user = new.setdefault("spec", {}), context.user
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    for field, value in (("username", user.name), ("uid", user.uid), ("groups", list(user.groups))):
        if value:
            spec[field] = value
    if user.extra:
        spec["extra"] = {key: list(values) for key, values in user.extra.items()}


def _request_update(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    keep(new, old, "status")


def _request_status(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    status, known = new.setdefault("status", {}), old.get("status") or {}
    for kind in _DECIDED:
        _keep_decision(status, known, kind)


def _keep_decision(status: Tree, known: Tree, kind: str) -> None:
    """A status update does not touch decisions, as long as it lists as many as there were."""
    before = [item for item in known.get("conditions") or () if item.get("type") == kind]
    conditions = list(status.get("conditions") or ())
    places = [index for index, item in enumerate(conditions) if item.get("type") == kind]
    if before and len(before) == len(places):
        for place, item in zip(places, before, strict=True):
            conditions[place] = item
        status["conditions"] = conditions


def _approval(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    conditions = (new.get("status") or {}).get("conditions")
    status = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
    new["status"] = status if conditions is None else {**status, "conditions": conditions}


def _stamp_conditions(new: Tree, old: Tree | None, context: Context) -> None:
    known = ((old or {}).get("status") or {}).get("conditions") or ()
    for condition in (new.get("status") or {}).get("conditions") or ():
        if not condition.get("lastUpdateTime"):
            condition["lastUpdateTime"] = context.now
        if not condition.get("lastTransitionTime"):
            condition["lastTransitionTime"] = _transition(condition, known) or context.now


def _transition(condition: Tree, known: object) -> str:
    assert isinstance(known, list | tuple)
    for item in known:
        same = all(item.get(field) == condition.get(field) for field in ("type", "status"))
        if same and item.get("lastTransitionTime"):
            return str(item["lastTransitionTime"])
    return ""


def _stamp_service(new: Tree, old: Tree | None, context: Context) -> None:
    if old is None and (new.get("spec") or {}).get("service") is None:
        condition = {
            "type": "Available",
            "status": "True",
            "lastTransitionTime": context.now or new["metadata"].get("creationTimestamp"),
            "reason": "Local",
            "message": "Local APIServices are always available",
        }
        new["status"] = {"conditions": [condition]}


def _service_status(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    for field in _SERVICE_STATUS_KEEPS:
        keep(new["metadata"], old["metadata"], field)


SIGNING_REQUEST = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=False),
    on_update=_request_update,
    on_status=_request_status,
    stamp=_stamp_request,
    stamp_status=_stamp_conditions,
    check_create=certificate_request.validate_request,
    check_update=certificate_request.validate_request_update,
    check_status=certificate_request.validate_request_status,
)
SIGNING_REQUEST_APPROVAL = Strategy(
    namespaced=False,
    on_update=_approval,
    stamp=_stamp_conditions,
    check_update=certificate_request.validate_request_approval,
)
API_SERVICE = Strategy(
    namespaced=False,
    on_create=parts.new_with_status({}, generation=False),
    on_update=parts.keep_status,
    on_status=_service_status,
    stamp=_stamp_service,
    needs_version_on_update=True,
    check_create=api_service.validate_api_service,
    check_update=api_service.validate_api_service_update,
    check_status=api_service.validate_api_service_status,
)
