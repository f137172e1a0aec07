"""Reads an API server's audit log: JSON lines of audit.k8s.io/v1, at the level Metadata and above.

The files are read once, a line at a time, all of them in the order of time. What is kept is what a target may have
followed from, ``history.MOST`` steps; the oldest make room. Of the bodies, which the levels Request and RequestResponse
have, only the fields of ``views`` are decoded.

upstream: staging/src/k8s.io/apiserver/pkg/apis/audit/v1
"""

import gzip
import re
import sys
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import merge
from operator import itemgetter
from pathlib import Path
from typing import IO

import msgspec

from kcm_cli.api.short_names import kind_of, kind_of_reference
from kcm_cli.machinery import codec
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.meta import View, controller_of, object_key
from kcm_cli.machinery.times import seconds_of
from kcm_cli.rest.errors import Status
from kcm_cli.runtime.cause_ring import QUIET, refusal
from kcm_cli.trace.history import History, Write
from kcm_cli.trace.join import Target
from kcm_cli.trace.steps import (
    AUDIT,
    BOUND,
    CHANGED,
    CREATED,
    DELETED,
    EVICTED,
    KUBELET,
    REFUSED,
    SCALED,
    WRITTEN,
    Ref,
    Step,
    actor_of,
)
from kcm_cli.trace.views import KINDS, CoreV1Event, EventsV1Event, ScaleTarget, Seen

MOST_LINE = 16 << 20
"""Bytes of a line; what is longer is a bad line. API servers cut events at 10 MiB."""
_GZIP = b"\x1f\x8b"
_VERSION = "audit.k8s.io/v1"
_DONE = ("ResponseComplete", "Panic")
_WRITES = frozenset(("create", "update", "patch", "delete", "deletecollection"))
_KINDS = frozenset(resource.kind for resource in KINDS)
_CLUSTER = frozenset(resource.kind for resource in KINDS if not resource.namespaced)
_CREATED = 201
_OF_EVENTS = ("create", "patch", "update")
_SELECTOR = re.compile(r"[?&](?:label|field)Selector=[^&]")
_EVENTS, _DRY_RUN = "events.k8s.io", "dryRun"
_PASSING = (404, 409)
"""Refusals that a client expects, and repeats its write after."""


class _User(View, frozen=True, gc=False):
    username: str = ""


class _Reference(View, frozen=True, gc=False):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_group: str = ""
    subresource: str = ""


class _Options(View, frozen=True, gc=False):
    """metav1.DeleteOptions."""

    dry_run: tuple[str, ...] = ()


class _Sent(_Options, frozen=True, gc=False):
    """What is read of the body of a request that has no answer of its own kind: of a binding, a deletion or an
    eviction."""

    target: ScaleTarget | None = None
    delete_options: _Options | None = None


class Event(View, frozen=True, gc=False):
    """audit.k8s.io/v1 Event."""

    api_version: str = ""
    kind: str = ""
    stage: str = ""
    verb: str = ""
    user: _User = _User()
    impersonated_user: _User | None = None
    user_agent: str = ""
    request_uri: str = msgspec.field(default="", name="requestURI")
    object_ref: _Reference | None = None
    response_status: Status | None = None
    request_received_timestamp: str | None = None
    request_object: msgspec.Raw = msgspec.Raw(b"null")
    response_object: msgspec.Raw = msgspec.Raw(b"null")


class AuditLog:
    """What a log says about a target. lines, bad: how many there were, and how many of them could not be read. first,
    last: Unix times of the first and last event; None where there is none. cut: files that could not be read to their
    end, and why."""

    def __init__(self, target: Target, history: History) -> None:
        self.history = history
        self.lines = self.bad = 0
        self.first: float | None = None
        self.last: float | None = None
        self.cut: dict[str, str] = {}
        self._target = target

    def read(self, stream: IO[bytes]) -> None:
        """Read a file to its end."""
        self.take(found for line in _lines(stream) if (found := self.event(line)) is not None)

    def take(self, *logs: Iterable[tuple[float, Event]]) -> None:
        """Take the events of several files in the order of time: each API server has a log of its own."""
        for at, event in merge(*logs, key=itemgetter(0)):
            if event.object_ref is not None:
                self._write(event, event.object_ref, at)

    def event(self, line: bytes) -> tuple[float, Event] | None:
        """The event of a line, with its time, if it is a write."""
        self.lines += 1
        event = codec.decode_or_none(line, Event)
        at = seconds_of(event.request_received_timestamp) if event is not None else None
        if event is None or at is None or event.api_version != _VERSION or event.kind != "Event":
            self.bad += bool(line.strip())
            return None
        self.first = at if self.first is None else min(at, self.first)
        self.last = at if self.last is None else max(at, self.last)
        return (at, event) if event.stage in _DONE and event.verb in _WRITES and not _is_dry(event) else None

    def _write(self, event: Event, ref: _Reference, at: float) -> None:
        kind, answer = kind_of(f"{ref.resource}.{ref.api_group}"), event.response_status or Status()
        namespace = "" if kind in _CLUSTER else ref.namespace
        if ref.resource == "events":
            self._event_written(event, ref, at)
            return
        if f"{ref.resource}/{ref.subresource}" in QUIET or not self._is_near(kind, namespace, ref):
            return
        who = event.impersonated_user or event.user
        actor = actor_of(who.username, event.user_agent)
        if event.impersonated_user is not None:
            actor = f"{actor} (as {event.user.username} said)"
        if 200 <= answer.code < 300:
            self._took(event, ref, kind, actor, at)
        elif answer.code not in _PASSING:
            why = f"{answer.code} {refusal(answer.reason, answer.message)}".strip()
            name = ref.name
            what = f"{event.verb} {kind}{'/' + ref.subresource if ref.subresource else ''}: {why}"
            about = Ref(kind, object_key(namespace, name))
            owner = _owner(event.request_object, namespace)
            makes = event.verb == "create" and not ref.subresource
            self.history.add(Step(at, REFUSED, about, actor, AUDIT, what, trouble=True, behind=owner, makes=makes))

    def _is_near(self, kind: str, namespace: str, ref: _Reference) -> bool:
        target = self._target
        if target.is_kind(kind, ref.resource) and ref.name == target.name:
            return True
        if kind == "Namespace":
            return ref.name == target.namespace
        return kind == "Node" or (kind in _KINDS and namespace == target.namespace)

    def _took(self, event: Event, ref: _Reference, kind: str, actor: str, at: float) -> None:
        """A write that succeeded."""
        obj = _seen(event.response_object, kind)
        details = event.response_status.details if event.response_status is not None else None
        uid = obj.uid if obj is not None else ref.uid or (details.uid if details is not None else "")
        name = obj.name if obj is not None else ref.name
        key = f"{ref.namespace}/{name}" if ref.namespace and kind not in _CLUSTER else name
        about = Ref(kind, key, uid)
        if event.verb == "deletecollection":
            some = "all that match" if _SELECTOR.search(event.request_uri) else ""
            self.history.add(Step(at, DELETED, Ref(kind, f"{ref.namespace}/"), actor, AUDIT, some))
            return
        if obj is not None:
            verb = "" if ref.subresource in _STATUS else _verb(event, ref.subresource)
            self.history.version(kind, obj, at, write=Write(actor, verb))
            return
        if not name:
            return
        if ref.subresource == "binding":
            sent = codec.decode_or_none(event.request_object, _Sent)
            node = sent.target.name if sent is not None and sent.target is not None else ""
            if node:
                self.history.relations.place(about, node)
            self.history.add(Step(at, BOUND, about, actor, AUDIT, f"to node {node}" if node else "", settles=True))
        elif ref.subresource in _STATUS:
            if kind == "Pod" and actor.startswith(KUBELET):
                self.history.relations.place(about, actor.removeprefix(KUBELET))
            if self._target.is_kind(kind) and self._target.is_key(key):
                self.history.add(Step(at, WRITTEN, about, actor, AUDIT))
        else:
            self.history.add(Step(at, _verb(event, ref.subresource), about, actor, AUDIT))

    def _event_written(self, event: Event, ref: _Reference, at: float) -> None:
        """An Event that a component wrote: with the level Request, it says what it would to an observer. That it
        happened again is a patch, of which the answer has the whole."""
        if event.verb not in _OF_EVENTS or ref.namespace not in (self._target.namespace, "default"):
            return
        body = event.request_object if event.verb == "create" else event.response_object
        if ref.api_group == _EVENTS:
            newer = codec.decode_or_none(body, EventsV1Event)
            written = newer.as_core_v1 if newer is not None else None
        else:
            written = codec.decode_or_none(body, CoreV1Event)
        if written is not None:
            self.history.event(written, at)


_STATUS = frozenset(("status", "approval"))


def _is_dry(event: Event) -> bool:
    """Whether it is a dry run, which wrote nothing. A deletion or an eviction may say so in its body only."""
    names = (pair.partition("=")[0] for pair in event.request_uri.partition("?")[2].split("&"))
    if _DRY_RUN in names:
        return True
    ref = event.object_ref
    if not event.verb.startswith("delete") and (ref is None or ref.subresource != "eviction"):
        return False
    sent = codec.decode_or_none(event.request_object, _Sent)
    return sent is not None and bool(sent.dry_run or (sent.delete_options is not None and sent.delete_options.dry_run))


def _owner(raw: msgspec.Raw, namespace: str) -> Ref | None:
    """The controller of an object that was to be created."""
    sent = codec.decode_or_none(raw, Seen)
    owner = controller_of(sent) if sent is not None else None
    return (
        Ref(kind_of_reference(owner.api_version, owner.kind), object_key(namespace, owner.name), owner.uid)
        if owner
        else None
    )


def _verb(event: Event, subresource: str) -> str:
    if subresource == "eviction":
        return EVICTED
    if subresource == "scale":
        return SCALED
    if event.response_status is not None and event.response_status.code == _CREATED:  # also by an update or an apply
        return CREATED
    return {"create": CREATED, "delete": DELETED}.get(event.verb, CHANGED)


def _seen(raw: msgspec.Raw, kind: str) -> Seen | None:
    """The object in an answer; None where there is none, or an object of another kind, such as a Status."""
    found = codec.decode_or_none(raw, _Kinded)
    return found if found is not None and found.kind == kind else None


class _Kinded(Seen, frozen=True, gc=False, kw_only=True):
    kind: str = ""


def _why(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def read_files(paths: Iterable[str], log: AuditLog) -> None:
    """Read files, plain or gzip; - is standard input. Raises FormatError for one of which nothing can be read, and if
    no line of any is an event."""
    named = list(paths)
    log.take(*(_events(path, log) for path in named))
    if log.bad and log.last is None:
        have = "has" if len(named) == 1 else "have"
        raise FormatError(f"--audit-log: {', '.join(named)} {have} no line with an event of {_VERSION} in JSON")


def _events(path: str, log: AuditLog) -> Iterator[tuple[float, Event]]:
    began = False
    try:
        with _opened(path) as stream:
            for line in _lines(stream):
                began = True
                if (found := log.event(line)) is not None:
                    yield found
    except (OSError, EOFError, zlib.error) as error:
        if not began:
            raise FormatError(f"--audit-log: cannot read {path}: {_why(error)}") from error
        log.cut[path] = _why(error)


def _lines(stream: IO[bytes]) -> Iterator[bytes]:
    """The lines of a file; of a longer one than MOST_LINE the beginning."""
    while line := stream.readline(MOST_LINE):
        yield line
        while len(line) == MOST_LINE and not line.endswith(b"\n"):
            line = stream.readline(MOST_LINE)


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield sys.stdin.buffer
        return
    with Path(path).open("rb") as file:
        if file.peek(2)[:2] != _GZIP:
            yield file
            return
        with gzip.open(file) as stream:
            yield stream  # type: ignore[misc]  # a BufferedIOBase has readline
