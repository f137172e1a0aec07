"""What Events of both groups share.

upstream: pkg/apis/core/validation/events.go, pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.selectable import Selectable, text_at
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.tables.column import Column, age, layout, name_of, wide
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules


def validate_event(doc: Tree, controller_field: str) -> Errors:
    namespace = doc["metadata"].get("namespace", "")
    target = (doc.get("involvedObject") or {}).get("namespace", "")
    if doc.get("eventTime"):
        wrong = not target and namespace not in ("default", "kube-system")
    else:
        wrong = namespace != target if target else namespace not in ("", "default")
    if wrong:
        yield errors.invalid("involvedObject.namespace", target, _MISMATCH)
    if doc.get("eventTime"):
        yield from _TEXTS[controller_field](doc, "")
    yield from errors.invalid_each("namespace", namespace, names.dns1123_subdomain(namespace))


def _short(limit: int) -> rules.Rule:
    def check(text: str, path: str) -> Errors:
        if len(text.encode()) > limit:
            yield errors.invalid(path, "", f"can have at most {limit} characters")

    return check


def _texts(controller_field: str) -> rules.Rule:
    return rules.fields(
        rules.required("reportingComponent", at=controller_field),
        rules.always("reportingComponent", labels.validate_key, at=controller_field),
        *(rules.required(field, _short(128)) for field in ("reportingInstance", "action", "reason")),
        rules.optional("message", _short(1024)),
    )


_TEXTS = {field: _texts(field) for field in ("reportingComponent", "reportingController")}

_MISMATCH = "does not match event.namespace"


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


EVENTS = layout(
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
    row=_event,
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
