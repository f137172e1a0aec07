"""The audit log: a file with a line of JSON for each request, in the form of kube-apiserver's log backend.

A request is one event, at the stage ResponseComplete; a watch or another stream is one at ResponseStarted. It is
written before the client gets its answer. A file that becomes too large is renamed to FILE.1, in place of the one
before; a link, a pipe or a device is not.

upstream: staging/src/k8s.io/apiserver/pkg/{audit/request.go, endpoints/filters/audit.go}, plugin/pkg/audit/log
"""

import logging
import os
import sys
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.times import format_micro_time
from kcm_cli.rest.transport import Request, Response
from kcm_cli.sandbox.apiserver.entrance import Exchange, as_json
from kcm_cli.sandbox.apiserver.entry.audit_policy import COMPLETE, DEFAULT, STARTED, VERSION, Level, Policy
from kcm_cli.sandbox.apiserver.schema import yaml_body
from kcm_cli.sandbox.apiserver.types import RequestInfo

log = logging.getLogger(__name__)

MOST_BYTES = 100 << 20
"""Of a file, before it is renamed."""
_LONGEST_AGENT = 1024
_CUT = "...TRUNCATED"
T = TypeVar("T")


class AuditOptions(msgspec.Struct, frozen=True):
    """path: of the file; - for standard output."""

    path: str
    policy: Policy = DEFAULT
    most_bytes: int = MOST_BYTES


class AuditLog:
    """Writes the log. A file that cannot be written costs its events, and is logged once."""

    def __init__(self, options: AuditOptions, clock: Clock) -> None:
        """Raises OSError."""
        self._options = options
        self._clock = clock
        self._file, self._size = self._opened()
        self._failed = False

    def observe(self, exchange: Exchange) -> None:
        """See ``entrance.Observer``."""
        line = event_of(exchange, self._options.policy, format_micro_time(self._clock.now()))
        if line is None:
            return
        try:
            if self._file.closed:  # an earlier attempt to rename it failed
                self._file, self._size = self._opened()
            if self._size and self._size + len(line) > self._options.most_bytes:
                self._rotate()
            self._file.write(line)
            self._file.flush()
            self._size += len(line)
            self._failed = False
        except OSError as error:
            if not self._failed:
                fields = {"path": self._options.path, "err": str(error)}
                log.error("Cannot write the audit log", extra={"fields": fields})
            self._failed = True

    def close(self) -> None:
        """May be called twice."""
        if self._file is not sys.stdout.buffer:
            self._file.close()

    def _rotate(self) -> None:
        path = Path(self._options.path)
        if self._file is sys.stdout.buffer or path.is_symlink() or (path.exists() and not path.is_file()):
            return
        self._file.close()
        path.replace(f"{path}.1")
        self._file, self._size = self._opened()

    def _opened(self) -> tuple[IO[bytes], int]:
        path = self._options.path
        if path == "-":
            return sys.stdout.buffer, 0
        file = open(path, "ab", buffering=0, opener=_private)  # noqa: SIM115  # until ``close``
        return file, file.tell() if file.seekable() else 0


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


class _Meta(msgspec.Struct, frozen=True, rename="camel", gc=False):
    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None


class _Sent(msgspec.Struct, frozen=True, gc=False):
    """What is read of the body of a request. Patches have no metadata that names an object."""

    metadata: _Meta | None = None


class _Status(msgspec.Struct, frozen=True, gc=False):
    """What is read of the body of an answer."""

    kind: str = ""
    status: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    message: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    reason: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    details: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """audit.k8s.io/v1 Event, with the fields in upstream's order."""

    kind: str
    api_version: str
    level: str
    audit_id: str = msgspec.field(name="auditID")
    stage: str
    request_uri: str = msgspec.field(name="requestURI")
    verb: str
    user: Doc
    impersonated_user: Doc | None = None
    user_agent: str = ""
    object_ref: Mapping[str, str] = {}
    response_status: Mapping[str, object]
    request_object: msgspec.Raw | None = None
    response_object: msgspec.Raw | None = None
    request_received_timestamp: str
    stage_timestamp: str
    annotations: Mapping[str, str] = {}


def event_of(exchange: Exchange, policy: Policy, now: str) -> bytes | None:
    """The event as a line of JSON; None if the policy does not want it. now: as a MicroTime."""
    asked, answer = exchange.asked, exchange.answer
    wanted = policy.wants(asked.user, asked.info)
    stage = COMPLETE if isinstance(answer, Response) else STARTED
    if answer is None or wanted.level == Level.NONE or stage in wanted.without:
        return None
    request, info = asked.request, asked.info
    sent = _sent(request)
    shown = _json(answer.body) if isinstance(answer, Response) else b""
    agent = asked.user_agent
    form = _as_it_is if wanted.managed_fields else _without_managed_fields
    event = _Event(
        kind="Event",
        api_version=VERSION,
        level=wanted.level.text,
        audit_id=request.headers.get("audit-id") or str(uuid.uuid4()),
        stage=stage,
        request_uri=_uri(request),
        verb=info.verb,
        user=asked.user.info() if asked.user.name else {},
        impersonated_user=exchange.user.info() if exchange.is_impersonated else None,
        user_agent=agent if len(agent) <= _LONGEST_AGENT else agent[:_LONGEST_AGENT] + _CUT,
        object_ref=_reference(info, sent) if info.is_resource else {},
        response_status=_status(answer.status, shown),
        request_object=form(sent) if sent and wanted.level >= Level.REQUEST else None,
        response_object=form(shown) if shown and wanted.level >= Level.REQUEST_RESPONSE else None,
        request_received_timestamp=format_micro_time(exchange.received),
        stage_timestamp=now,
        annotations=_decision(exchange),
    )
    return codec.encode(event) + b"\n"


def _uri(request: Request) -> str:
    path = quote(request.path, safe="/:")
    return f"{path}?{urlencode(request.query)}" if request.query else path


def _decision(exchange: Exchange) -> Mapping[str, str]:
    if exchange.allowed is None:
        return {}
    prefix = "authorization.k8s.io"
    return {f"{prefix}/decision": "allow" if exchange.allowed else "forbid", f"{prefix}/reason": exchange.reason}


def _sent(request: Request) -> bytes:
    """The body of a request as JSON in one line; empty if it cannot be read."""
    if "yaml" not in request.headers.get("content-type", ""):
        return _json(request.body)
    try:
        return _json(request.body) or codec.encode(yaml_body.load(request.body)[0])
    except (yaml_body.YamlError, RecursionError):
        return b""


def _json(body: bytes) -> bytes:
    """A body as JSON in one line; empty if it is none."""
    if not body:
        return b""
    try:
        text = as_json(body)
        text.decode()
        codec.decode(text, _Any | list[_Any])  # type: ignore[arg-type]  # a patch may be a list
        try:
            return msgspec.json.format(text, indent=-1)
        except (msgspec.DecodeError, RecursionError):  # it is deep, or what only Go reads
            return codec.encode(codec.decode_doc(text))
    except (codec.DecodeError, UnicodeDecodeError):
        return b""


class _Any(msgspec.Struct, frozen=True, gc=False):
    """Any object: its syntax is checked, and nothing kept."""


def _reference(info: RequestInfo, sent: bytes) -> Mapping[str, str]:
    meta = _read(sent, _Sent()).metadata or _Meta()
    if info.verb not in ("create", "update"):
        meta = _Meta()
    found = {
        "resource": info.plural,
        "namespace": info.namespace or meta.namespace or "",
        "name": info.name or meta.name or "",
        "uid": meta.uid or "",
        "apiGroup": info.group,
        "apiVersion": info.version,
        "resourceVersion": meta.resource_version or "",
        "subresource": info.subresource,
    }
    return {name: value for name, value in found.items() if value}


def _status(code: int, shown: bytes) -> Mapping[str, object]:
    """metav1.Status: that of the answer, or the code alone."""
    body = _read(shown, _Status())
    kept: dict[str, object] = {"metadata": {}}
    if body.kind == "Status":
        found = {name: getattr(body, name) for name in ("status", "message", "reason", "details")}
        kept |= {name: value for name, value in found.items() if value is not msgspec.UNSET}
    return {**kept, "code": code}


def _read(body: bytes, otherwise: T) -> T:
    return (codec.decode_or_none(body, type(otherwise)) if body else None) or otherwise


def _as_it_is(body: bytes) -> msgspec.Raw:
    return msgspec.Raw(body)


def _without_managed_fields(body: bytes) -> msgspec.Raw:
    doc: Any = codec.decode_doc(body)
    items = doc.get("items") if isinstance(doc, dict) else None
    for one in [doc, *(items if isinstance(items, list) else ())]:
        if isinstance(one, dict) and isinstance(one.get("metadata"), dict):
            one["metadata"].pop("managedFields", None)
    return msgspec.Raw(codec.encode(doc))
