"""Plays a recorded incident to a history, as one of four sources would have told it."""

import gzip
import io
import json
from functools import lru_cache
from typing import Any

from kcm_cli.machinery import codec
from kcm_cli.trace.audit import AuditLog
from kcm_cli.trace.behind import Linked
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target, Trace
from kcm_cli.trace.views import KINDS, CoreV1Event, Seen
from tests.kit.places import ROOT

PLACE = ROOT / "tests" / "recorded" / "trace"
WATCHED, LISTED, AUDITED, METADATA = "watched", "listed", "audited", "metadata"
BODIES = ("requestObject", "responseObject")


@lru_cache(4)
def recorded(name: str) -> Any:
    return json.loads(gzip.decompress((PLACE / f"{name}.json.gz").read_bytes()))


def target(name: str, word: str = "") -> Target:
    kind, namespace, object_name = recorded(name)["target"]
    if word:
        kind, _, object_name = word.partition("/")
    return Target(kind, namespace, object_name)


def history(name: str, source: str, about: Target) -> History:
    """What a source knows in the end. METADATA: the audit log at that level."""
    found = History()
    if source in (WATCHED, LISTED):
        for what, at, kind, doc, *more in recorded(name)[source]:
            if what == "event":
                found.event(codec.convert(doc, CoreV1Event), at)
            elif what == "gone":
                found.gone(kind, codec.convert(doc, Seen), at)
            else:
                found.version(kind, codec.convert(doc, Seen), at, listed=more[0])
        if source == LISTED:
            found.absent({one.kind for one in KINDS} - {"Node", "Namespace"}, at)
        return found
    log = AuditLog(about, found)
    log.read(io.BytesIO(audit_log(name, source)))
    assert log.bad == 0
    return found


def audit_log(name: str, source: str) -> bytes:
    """The lines of the log."""
    events = recorded(name)["audited"]
    if source == METADATA:
        events = [{key: value for key, value in event.items() if key not in BODIES} for event in events]
        for event in events:
            event["level"] = "Metadata"
    return b"".join(codec.encode(event) + b"\n" for event in events)


def traced(name: str, source: str, word: str = "") -> Trace:
    """The trace of an incident's target."""
    about = target(name, word)
    found = history(name, source, about)
    return Linked(found.steps, found.relations).about(about)
