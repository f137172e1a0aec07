"""Event.

upstream: pkg/apis/events/{validation,v1/conversion.go}, pkg/registry/events/event/strategy.go,
pkg/printers/internalversion/printers.go
"""

from kcm_cli.api.resource import GVR
from kcm_cli.sandbox.apiserver.kinds.events.common import EVENTS, GROUP_SELECTABLE, validate_event
from kcm_cli.sandbox.apiserver.registry.conversion import StoredAs
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata, rules

_FIXED = (
    *("reason", "message", "source", "firstTimestamp", "lastTimestamp", "count", "reason", "type"),
    *("eventTime", "action", "related", "reportingComponent", "reportingInstance"),
)
_STRUCTS = {"source": "core.EventSource", "related": "core.ObjectReference"}
_ZEROS: dict[str, object] = {"count": 0, "firstTimestamp": None, "lastTimestamp": None, "eventTime": None}


def _new(doc: Tree) -> Errors:
    """Check an Event of events.k8s.io/v1, in the form of core/v1."""
    yield from validate_event(doc, "reportingController")
    yield from metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    yield from _EVENT(doc, "")


def _least(count: int, path: str) -> Errors:
    return [errors.invalid(path, "", "should be at least 2")] if count < 2 else ()


def _type(kind: str, path: str) -> Errors:
    return () if kind in ("Normal", "Warning") else [errors.invalid(path, "", f"has invalid value: {kind}")]


def _unset(value: object, path: str) -> Errors:
    return [errors.invalid(path, "", "needs to be unset")]


def _no_source(source: Tree, path: str) -> Errors:
    return _unset(source, path) if any(source.values()) else ()


_SERIES = rules.optional(
    "series", rules.fields(rules.always("count", _least, default=0), rules.required("lastObservedTime"))
)
_EVENT = rules.fields(
    _SERIES,
    rules.required("eventTime"),
    rules.always("type", _type),
    *(rules.nonempty(field, _unset) for field in ("firstTimestamp", "lastTimestamp", "count")),
    rules.nonempty("source", _no_source),
)
_ONLY_SERIES = rules.fields(_SERIES)


def _changed(new: Tree, old: Tree) -> Errors:
    yield from validate_event(new, "reportingController")
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])
    if new.get("series") != old.get("series"):
        yield from _ONLY_SERIES(new, "")
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


_NAMES = (
    ("regarding", "involvedObject"),
    ("note", "message"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("reportingController", "reportingComponent"),
)
"""The names of fields here and in core/v1."""
_TO_CORE = dict(_NAMES)
_FROM_CORE = {core: ours for ours, core in _NAMES}
_ALWAYS: Tree = {"reportingComponent": "", "reportingInstance": ""}
"""Fields without omitempty in the core form."""
_OPTIONAL = frozenset(["reportingComponent", "reportingInstance", "message", "reason", "action"])


def _to_core(doc: Tree) -> Tree:
    find = _TO_CORE.get
    core = {find(key, key): value for key, value in doc.items()}
    return {**_ALWAYS, **core, "apiVersion": "v1"}


def _from_core(doc: Tree) -> Tree:
    find = _FROM_CORE.get
    ours = {find(key, key): value for key, value in doc.items() if value or key not in _OPTIONAL}
    return {**ours, "apiVersion": "events.k8s.io/v1"}


KIND = Kind(
    "events.k8s.io",
    "events",
    stored_as={"v1": StoredAs(GVR("", "v1", "events"), _to_core, _from_core)},
    strategy=Strategy(
        names=None,
        creates_on_update=True,
        propagation="Unsupported",
        check=lambda new, old: _new(new) if old is None else _changed(new, old),
    ),
    table=EVENTS,
    selectable=GROUP_SELECTABLE,
)
