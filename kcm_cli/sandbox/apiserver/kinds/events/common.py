"""What both kinds of events share.

Source: pkg/apis/core/validation/events.go, pkg/printers/internalversion/printers.go.
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.selectable import Selectable, text_at
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.tables.column import Column, Layout, age, name_of, wide
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels

_TEXT_MAX, _NOTE_MAX = 128, 1024
_MISMATCH = "does not match event.namespace"


def validate_event(doc: Tree, controller_field: str) -> Errors:
    namespace = doc["metadata"].get("namespace", "")
    target = (doc.get("involvedObject") or {}).get("namespace", "")
    if not doc.get("eventTime"):
        wrong = namespace != target if target else namespace not in ("", "default")
        if wrong:
            yield errors.invalid("involvedObject.namespace", target, _MISMATCH)
    else:
        wrong = not target and namespace not in ("default", "kube-system")
        if wrong:
            yield errors.invalid("involvedObject.namespace", target, _MISMATCH)
        yield from _texts(doc, controller_field)
    yield from errors.invalid_each("namespace", namespace, names.dns1123_subdomain(namespace))


def _texts(doc: Tree, controller_field: str) -> Errors:
    controller = doc.get("reportingComponent", "")
    if not controller:
        yield errors.required(controller_field)
    yield from labels.validate_key(controller, controller_field)
    for field in ("reportingInstance", "action", "reason"):
        value = doc.get(field, "")
        if not value:
            yield errors.required(field)
        if len(value.encode()) > _TEXT_MAX:
            yield errors.invalid(field, "", f"can have at most {_TEXT_MAX} characters")
    if len(doc.get("message", "").encode()) > _NOTE_MAX:
        yield errors.invalid("message", "", f"can have at most {_NOTE_MAX} characters")


def _event(doc: Tree, now: datetime) -> list[object]:
    first = age(doc.get("firstTimestamp") or doc.get("eventTime"), now)
    last = age(doc["lastTimestamp"], now) if doc.get("lastTimestamp") else first
    count, series = doc.get("count", 0) or 1, doc.get("series")
    if series is not None:
        last, count = age(series.get("lastObservedTime"), now), series.get("count", 0)
    about, source = doc.get("involvedObject") or {}, doc.get("source") or {}
    kind = about.get("kind", "").lower()
    where = source.get("host") or doc.get("reportingInstance") or ""
    who = source.get("component") or doc.get("reportingComponent") or ""
    return [
        last,
        doc.get("type", ""),
        doc.get("reason", ""),
        f"{kind}/{about['name']}" if about.get("name") else kind,
        about.get("fieldPath", ""),
        f"{who}, {where}" if where else who,
        doc.get("message", "").strip(),
        first,
        count,
        name_of(doc),
    ]


EVENTS = Layout(
    (
        Column("Last Seen", "Event.lastTimestamp"),
        Column("Type", "Event.type"),
        Column("Reason", "Event.reason"),
        Column("Object", "Event.involvedObject"),
        wide("Subobject", "ObjectReference.fieldPath"),
        wide("Source", "Event.source"),
        Column("Message", "Event.message"),
        wide("First Seen", "Event.firstTimestamp"),
        wide("Count", "Event.count"),
        wide("Name", "ObjectMeta.name", format_="name"),
    ),
    _event,
)


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_EVENT_FIELDS = {f"involvedObject.{name}": f"involvedObject.{name}" for name in _INVOLVED} | {
    "reason": "reason",
    "reportingComponent": "reportingComponent",
    "source": "",
    "type": "type",
}


def _values(stored: Stored) -> dict[str, str]:
    doc = stored.doc
    values = {label: text_at(doc, path) for label, path in _EVENT_FIELDS.items()}
    values["source"] = text_at(doc, "source.component") or values["reportingComponent"]
    values["metadata.name"], values["metadata.namespace"] = stored.name, stored.namespace
    return values


SELECTABLE = Selectable(_EVENT_FIELDS, values=_values)
GROUP_SELECTABLE = Selectable(
    {"reason": "reason", "type": "type"},
    aliases={
        **{f"regarding.{name}": f"involvedObject.{name}" for name in _INVOLVED},
        "reportingController": "reportingComponent",
    },
    values=_values,
)
