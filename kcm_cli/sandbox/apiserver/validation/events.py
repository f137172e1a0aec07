"""Events, as core/v1 takes them and as events.k8s.io/v1 does.

Source: pkg/apis/core/validation/events.go.
"""

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, labels, metadata

_TEXT_MAX, _NOTE_MAX = 128, 1024
_MISMATCH = "does not match event.namespace"
_FIXED = (
    *("reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_STRUCTS = {"source": "core.EventSource", "related": "core.ObjectReference"}
_ZEROS: dict[str, object] = {"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def validate_event(doc: Tree) -> list[FieldError]:
    """An event of core/v1."""
    return _event(doc, "reportingComponent")


def validate_event_update(new: Tree, old: Tree) -> list[FieldError]:
    return validate_event(new)


def _event(doc: Tree, controller_field: str) -> list[FieldError]:
    namespace = doc["metadata"].get("namespace", "")
    target = (doc.get("involvedObject") or {}).get("namespace", "")
    if not doc.get("eventTime"):
        wrong = namespace != target if target else namespace not in ("", "default")
        found = [errors.invalid("involvedObject.namespace", target, _MISMATCH)] if wrong else []
    else:
        wrong = not target and namespace not in ("default", "kube-system")
        found = [errors.invalid("involvedObject.namespace", target, _MISMATCH)] if wrong else []
        found += _texts(doc, controller_field)
    return found + errors.invalid_each("namespace", namespace, names.dns1123_subdomain(namespace))


def _texts(doc: Tree, controller_field: str) -> list[FieldError]:
    controller = doc.get("reportingComponent", "")
    found = [] if controller else [errors.required(controller_field)]
    found += labels.validate_key(controller, controller_field)
    for field in ("reportingInstance", "action", "reason"):
        value = doc.get(field, "")
        if not value:
            found.append(errors.required(field))
        if len(value.encode()) > _TEXT_MAX:
            found.append(errors.invalid(field, "", f"can have at most {_TEXT_MAX} characters"))
    if len(doc.get("message", "").encode()) > _NOTE_MAX:
        found.append(errors.invalid("message", "", f"can have at most {_NOTE_MAX} characters"))
    return found


def validate_group_event(doc: Tree) -> list[FieldError]:
    """An event of events.k8s.io/v1, in the form of core/v1."""
    found = _event(doc, "reportingController")
    found += metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    found += _series(doc.get("series"))
    if not doc.get("eventTime"):
        found.append(errors.required("eventTime"))
    kind = doc.get("type", "")
    if kind not in ("Normal", "Warning"):
        found.append(errors.invalid("type", "", f"has invalid value: {kind}"))
    source = doc.get("source") or {}
    unset = (*(doc.get(field) for field in ("firstTimestamp", "lastTimestamp", "count")), any(source.values()))
    for field, value in zip(("firstTimestamp", "lastTimestamp", "count", "source"), unset, strict=True):
        if value:
            found.append(errors.invalid(field, "", "needs to be unset"))
    return found


def _series(series: Tree | None) -> list[FieldError]:
    if series is None:
        return []
    found: list[FieldError] = []
    if series.get("count", 0) < 2:
        found.append(errors.invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        found.append(errors.required("series.lastObservedTime"))
    return found


def validate_group_event_update(new: Tree, old: Tree) -> list[FieldError]:
    found = _event(new, "reportingController")
    found += metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        found += _series(new.get("series"))
    after, before = new.get("involvedObject") or {}, old.get("involvedObject") or {}
    shown = go_print.internal("core.ObjectReference", after)
    found += errors.fixed("involvedObject", after, before, shown)
    for field in _FIXED:
        zero = _ZEROS.get(field, {} if field == "source" else None if field == "related" else "")
        value, known = new.get(field) or zero, old.get(field) or zero
        shown = value
        if field in _STRUCTS and value is not None:
            shown = go_print.internal(_STRUCTS[field], value)
        path = "reportingController" if field == "reportingComponent" else field
        found += errors.fixed(path, value, known, shown)
    return found
