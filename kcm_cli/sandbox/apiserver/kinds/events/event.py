"""Event.

Source: pkg/apis/events/validation, pkg/registry/events/event/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.events.common import EVENTS, GROUP_SELECTABLE, validate_event
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata

_FIXED = (
    *("reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_STRUCTS = {"source": "core.EventSource", "related": "core.ObjectReference"}
_ZEROS: dict[str, object] = {"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def validate_group_event(doc: Tree) -> list[FieldError]:
    """An event of events.k8s.io/v1, in the form of core/v1."""
    found = validate_event(doc, "reportingController")
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
    found = validate_event(new, "reportingController")
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


KIND = Kind(
    "events.k8s.io",
    "events",
    strategy=Strategy(
        creates_on_update=True,
        check_create=validate_group_event,
        check_update=validate_group_event_update,
    ),
    table=EVENTS,
    selectable=GROUP_SELECTABLE,
)
