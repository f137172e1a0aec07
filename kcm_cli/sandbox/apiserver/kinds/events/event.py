"""Event.

Source: pkg/apis/events/validation, pkg/registry/events/event/strategy.go, pkg/printers/internalversion/printers.go.
"""

from kcm_cli.sandbox.apiserver.kinds.events.common import EVENTS, GROUP_SELECTABLE, validate_event
from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata

_FIXED = (
    *("reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_STRUCTS = {"source": "core.EventSource", "related": "core.ObjectReference"}
_ZEROS: dict[str, object] = {"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def validate_group_event(doc: Tree) -> Errors:
    """An event of events.k8s.io/v1, in the form of core/v1."""
    yield from validate_event(doc, "reportingController")
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from _series(doc.get("series"))
    if not doc.get("eventTime"):
        yield errors.required("eventTime")
    kind = doc.get("type", "")
    if kind not in ("Normal", "Warning"):
        yield errors.invalid("type", "", f"has invalid value: {kind}")
    source = doc.get("source") or {}
    unset = (*(doc.get(field) for field in ("firstTimestamp", "lastTimestamp", "count")), any(source.values()))
    for field, value in zip(("firstTimestamp", "lastTimestamp", "count", "source"), unset, strict=True):
        if value:
            yield errors.invalid(field, "", "needs to be unset")


def _series(series: Tree | None) -> Errors:
    if series is None:
        return
    if series.get("count", 0) < 2:
        yield errors.invalid("series.count", "", "should be at least 2")
    if not series.get("lastObservedTime"):
        yield errors.required("series.lastObservedTime")


def validate_group_event_update(new: Tree, old: Tree) -> Errors:
    yield from validate_event(new, "reportingController")
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        yield from _series(new.get("series"))
    after, before = new.get("involvedObject") or {}, old.get("involvedObject") or {}
    shown = go_print.internal("core.ObjectReference", after)
    yield from errors.fixed("involvedObject", after, before, shown)
    for field in _FIXED:
        zero = _ZEROS.get(field, {} if field == "source" else None if field == "related" else "")
        value, known = new.get(field) or zero, old.get(field) or zero
        shown = value
        if field in _STRUCTS and value is not None:
            shown = go_print.internal(_STRUCTS[field], value)
        path = "reportingController" if field == "reportingComponent" else field
        yield from errors.fixed(path, value, known, shown)


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
