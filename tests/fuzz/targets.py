"""The parsers that meet foreign bytes, each with the errors that it may raise.

A parser gets bytes. One of text gets them as UTF-8, with U+FFFD in place of what is none. Where a value can be written
again, the parser here does so, and compares what that is read as.
"""

import asyncio
import gzip
import io
import json
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any, cast

import httptools
import yaml

from kcm_cli.api.apps import DEPLOYMENTS
from kcm_cli.api.core import PODS
from kcm_cli.api.protobuf import decoding, encoding
from kcm_cli.api.protobuf.decoding import UnknownForm
from kcm_cli.api.resource import Resource
from kcm_cli.component import configfile, flag_values, key_pairs, tokens, yaml_documents
from kcm_cli.component.clock import RealClock
from kcm_cli.controllers.persistentvolume_attach_detach import flex
from kcm_cli.controllers.persistentvolume_binder import recycler
from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery import (
    addresses,
    codec,
    cron,
    der,
    durations,
    envelope,
    fields,
    formats,
    images,
    integers,
    intstr,
    jsonpath,
    labels,
    names,
    nesting,
    patches,
    pem,
    quantity,
    regexps,
    times,
    urls,
    zones,
)
from kcm_cli.machinery.cel import CelError, CelSyntaxError, Program, lexer, parser
from kcm_cli.machinery.errors import FormatError, PatchError
from kcm_cli.manager import observability
from kcm_cli.manager.config_files import COMPONENT_CONFIG
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.options import Options
from kcm_cli.plan import files, flag_files
from kcm_cli.plan.snapshot import PlanError
from kcm_cli.planning import csi_handles, pkcs10
from kcm_cli.rest import discovery, errors, kubeconfig, listing, openapi, plugins, proxies, tls
from kcm_cli.rest.client import Client
from kcm_cli.rest.connection import Connection, HeadTooLarge, Lost
from kcm_cli.rest.errors import AccessError, ApiError, CredentialsError, KubeconfigError
from kcm_cli.rest.kubeconfig import Chosen, Cluster, Exec, User
from kcm_cli.rest.metrics import NO_PLUGIN_METRICS
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.served_resources import Discovery
from kcm_cli.rest.socks import ProxyRefused, tunnel
from kcm_cli.rest.transport import Request, Response, Unreadable
from kcm_cli.runtime.cause_document import CausesDocument
from kcm_cli.runtime.frames import FrameDecoder
from kcm_cli.runtime.leader import record
from kcm_cli.runtime.wire import EventDecoder, _Pieces
from kcm_cli.sandbox import kubeconfig as sandbox_kubeconfig
from kcm_cli.sandbox import manifests
from kcm_cli.sandbox.apiserver.admission.dynamic import calling, reviews
from kcm_cli.sandbox.apiserver.apply.patches import Configuration, Patches
from kcm_cli.sandbox.apiserver.crd import conversion
from kcm_cli.sandbox.apiserver.crd import formats as crd_formats
from kcm_cli.sandbox.apiserver.entry.audit_policy import policy_of
from kcm_cli.sandbox.apiserver.entry.fault import document_of, faults_of
from kcm_cli.sandbox.apiserver.http.server import HttpServer
from kcm_cli.sandbox.apiserver.kinds.certificates import certificatesigningrequest
from kcm_cli.sandbox.apiserver.registry import negotiation, options
from kcm_cli.sandbox.apiserver.routing import requestinfo
from kcm_cli.sandbox.apiserver.schema import gojson, yaml_body
from kcm_cli.sandbox.apiserver.schema.bodies import Target as Body
from kcm_cli.sandbox.apiserver.schema.schemas import Schemas
from kcm_cli.sandbox.apiserver.schema.yaml_scalars import BadScalar
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.security.impersonation import Impersonator
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError as Refusal
from kcm_cli.sandbox.apiserver.types import RequestInfo
from kcm_cli.sandbox.apiserver.types import User as Asking
from kcm_cli.sandbox.apiserver.validation import container_env, volume_sources
from kcm_cli.sandbox.apiserver.webhooks import CallError
from kcm_cli.sandbox.nodes import annotations, expansion, rules
from kcm_cli.sandbox.programs import simulate, syntax
from kcm_cli.sandbox.programs.errors import Unknown
from kcm_cli.sandbox.programs.execution import Opened
from kcm_cli.sandbox.programs.filesystem import There
from kcm_cli.sandbox.streams import spdy, websocket
from kcm_cli.serving.connection import HttpConnection
from kcm_cli.top import figures
from kcm_cli.trace.audit import AuditLog
from kcm_cli.trace.history import History
from kcm_cli.trace.join import Target as Traced

Errors = tuple[type[Exception], ...]


@dataclass(frozen=True)
class Target:
    """A parser. refuses: the documented errors. timed: it gets long texts, which none of a whole YAML file gets."""

    parse: Callable[[bytes], object]
    refuses: Errors = ()
    timed: bool = False


def _text(parse: Callable[[str], object], *refuses: type[Exception]) -> Target:
    return Target(lambda data: parse(data.decode("utf-8", "replace")), refuses, timed=True)


def _same(read: Callable[[Any], Any], write: Callable[[Any], Any], data: Any) -> object:
    """The value, which is the same after it was written and read again."""
    value = read(data)
    again = read(write(value))
    assert again == value, f"{value!r} is written as {write(value)!r}, which is read as {again!r}"
    return value


# -- bytes of a server


def _page(data: bytes, resource: Resource[Any] = PODS) -> object:
    return [resource.read_item(item) for item in listing.read_page(data, resource.kind).items]


def _watch(make: Callable[..., Any], data: bytes) -> object:
    """The events of a watch, which are the same in pieces, or end with the same error."""

    def events(*chunks: bytes) -> list[object]:
        odd: list[str] = []
        found: list[object] = [odd]
        decoder = make(PODS, skipped=odd.append)
        try:
            for chunk in chunks:
                found += decoder.feed(chunk)
        except (ApiError, Unreadable) as error:
            found.append(type(error))
        return found

    whole, middle = events(data), len(data) // 2
    assert repr(whole) == repr(events(data[:middle], data[middle:]))
    return whole


def _lease(data: bytes) -> object:
    """What a candidate does about the spec of a Lease."""
    mine = record.Record("me", 15, "2030-01-01T00:00:00.000000Z", "2030-01-01T00:00:00.000000Z", 0)
    theirs = record.from_spec(codec.decode(data, record.LeaseSpec))
    known = record.observe(None, theirs, 1.0)
    return record.decide(known, mine, 2.0), record.decide_coordinated(known, mine, 2.0)


class _Wire(asyncio.Transport):
    """A connection without a socket."""

    def __init__(self) -> None:
        super().__init__()
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        return None

    def is_closing(self) -> bool:
        return self.closed

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return default

    def pause_reading(self) -> None:
        return None

    def resume_reading(self) -> None:
        return None

    def abort(self) -> None:
        self.closed = True

    close = abort


@cache
def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.new_event_loop()


def _turns(data: bytes, received: Callable[[bytes], None]) -> Any:
    async def run() -> None:
        for chunk in (data[: len(data) // 2], data[len(data) // 2 :]):
            received(chunk)
            for _ in range(4):
                await asyncio.sleep(0)

    return run()


def _asked(data: bytes, read: Callable[[Response], object], *, bodiless: bool = False) -> object:
    """What kcm's client reads of an answer."""

    async def run() -> object:
        connection = Connection()
        connection.connection_made(_Wire())
        asked = asyncio.ensure_future(connection.ask(b"GET / HTTP/1.1\r\n\r\n", bodiless=bodiless))
        await asyncio.sleep(0)
        await _turns(data, connection.data_received)
        connection.connection_lost(None)
        return read(await asked)

    return _loop().run_until_complete(run())


def _answer(response: Response) -> object:
    return errors.from_response(response) if response.status >= 400 else errors.retry_after(response.headers)


def _socks(user: tuple[str, str] | None, data: bytes) -> object:
    """What a proxy says; what comes after it is the server's."""

    async def run() -> int:
        ours, proxys = socket.socketpair()
        with ours, proxys:
            ours.setblocking(False)
            proxys.sendall(data)
            proxys.shutdown(socket.SHUT_WR)
            await tunnel(ours, "api.example", 6443, user)
            return len(ours.recv(len(data)))

    left = _loop().run_until_complete(run())
    assert left <= max(0, len(data) - 9), "the replies are 2 and at least 7 bytes long"
    return left


class _Served:
    """A server that answers each request with the same. aggregated: in the newer form of discovery."""

    local = False

    def __init__(self, answers: Callable[[str], bytes], *, aggregated: bool) -> None:
        self._answers = answers
        form = ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList" if aggregated else ""
        self._headers = {"content-type": f"application/json{form}"}

    async def send(self, request: Request) -> Response:
        return Response(200, self._headers, self._answers(request.path))


def _client(answers: Callable[[str], bytes], *, aggregated: bool = False) -> Client:
    transport: Any = _Served(answers, aggregated=aggregated)
    return Client(transport, limiter=Unlimited(), user_agent="kcm", clock=RealClock())


def _aggregated(data: bytes) -> object:
    found = _loop().run_until_complete(discovery.discover(_client(lambda _: data, aggregated=True)))
    return _looked_up(found)


def _plain(data: bytes) -> object:
    """The groups, and in the lines after them the resources of each version."""
    groups, _, resources = data.partition(b"\n")
    client = _client(lambda path: groups if path in ("/api", "/apis") else resources)
    return _looked_up(_loop().run_until_complete(discovery.discover(client)))


def _looked_up(found: Discovery) -> object:
    for one in found.all():
        assert found.find(one.gvr.group, one.gvr.plural, one.gvr.version) is not None
        found.complete(one.gvr)
    return found.named("pods"), found.find_kind("", "Pod"), found.preferred()


def _published(data: bytes) -> object:
    """The schema of a kind, as far as it can be read."""
    schemas = _loop().run_until_complete(openapi.schemas(_client(lambda _: data), "apps", "v1"))
    assert schemas is not None
    reference = schemas.reference_to("apps", "v1", "Deployment")
    return None if reference is None else schemas.get(reference)


async def _echo(request: Request, peer: bytes | None) -> Response:
    options.agent_name(request)
    websocket.asked(request.headers)
    return Response(200, {}, request.body)


def _request(data: bytes) -> object:
    """What a client sends to a port: 10257 and that of the sandbox have the same connections."""
    raised: list[dict[str, Any]] = []

    async def run() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        server = HttpServer(_echo, RealClock())
        wire = _Wire()
        made = HttpConnection(server, server.limits.admit("192.0.2.1", wire.abort))
        made.connection_made(wire)
        await _turns(data, made.data_received)
        made.connection_lost(None)
        server.limits.close()
        await asyncio.sleep(0)

    _loop().run_until_complete(run())
    assert not raised, raised
    return None


# -- bytes of clients


@cache
def _schemas() -> Schemas:
    return Schemas()


_DEPLOYMENT = Body("apps", "v1", "Deployment")
_LIVE = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "labels": {"a": "b"}, "finalizers": ["a.b/c"]},
    "spec": {
        "replicas": 1,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"spec": {"containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 1}]}]}},
    },
}


def _body(media: str, mode: str, data: bytes) -> object:
    return _schemas().decode(_DEPLOYMENT, data, media, mode)


def _patch(media: str, mode: str, data: bytes) -> object:
    return Patches(_schemas()).apply(_DEPLOYMENT, json.loads(json.dumps(_LIVE)), data, media, mode)


def _apply(data: bytes) -> object:
    return Configuration(data, "Warn").doc


def _protobuf(data: bytes) -> object:
    """The JSON of a body in protobuf, which is the same after it was sent in protobuf again."""
    read = decoding.to_json(data)
    again = decoding.to_json(encoding.to_protobuf(json.loads(read)))
    assert json.loads(again) == json.loads(read)
    return read


def _query(text: str) -> object:
    pairs = tuple((name, value) for part in text.split("&") for name, _, value in [part.partition("=")])
    query, request = dict(pairs), Request("DELETE", "/", pairs)
    for read in (
        lambda: options.list_options(query, watch="watch" in query),
        lambda: options.write_options("PatchOptions", request, query, apply="apply" in query),
        lambda: options.delete_options(_schemas(), request, query),
        lambda: options.timeout_s(query.get("timeout", "")),
    ):
        try:
            read()
        except Refusal as error:
            assert error.code in (400, 422)
    return None


def _path(text: str) -> object:
    path, _, query = text.partition("?")
    pairs = dict(part.partition("=")[::2] for part in query.split("&"))
    requestinfo.unresolvable(path)
    return [requestinfo.resolve(method, path, pairs) for method in ("GET", "DELETE", "POST")]


def _accepts(text: str) -> object:
    return negotiation.negotiate(text), negotiation.for_status(text)


def _headers(text: str) -> dict[str, str]:
    return {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in text.split("\n"))
    }


def _handshake(text: str) -> object:
    headers = _headers(text)
    websocket.refusal(headers)
    websocket.answer_headers(headers, websocket.chosen(headers, ("v4.channel.k8s.io",)) or "")
    return websocket.bearer(headers)


@cache
def _impersonators() -> tuple[Impersonator, ...]:
    store: Any = Store()
    return tuple(Impersonator(Authorizer(store, (mode,))) for mode in ("AlwaysAllow", "AlwaysDeny", "RBAC"))


def _impersonated(data: bytes) -> object:
    """The headers of one request on each line; those of the same name are one."""
    headers: dict[str, str] = {}
    for line in data.decode("latin-1").split("\n"):
        name, _, value = line.partition(":")
        key = f"impersonate-{name.lower()}"
        headers[key] = f"{headers[key]}\n{value}" if key in headers else value
    found: list[object] = []
    for one in _impersonators():
        try:
            user = one.impersonate(Asking("jane"), headers, RequestInfo("get", "/api", False))
        except Refusal as error:
            assert error.code in (400, 403)
        else:
            assert user.name and set(map(type, user.groups)) <= {str}
            found.append(user)
    return found


def _messages(data: bytes) -> object:
    def parts(*chunks: bytes) -> bytes:
        reader = websocket.Reader()
        return b"".join(part.data for chunk in chunks for part in reader.receive(chunk))

    assert parts(data) == parts(data[: len(data) // 2], data[len(data) // 2 :])
    list(websocket.ChannelReader(text=True).channels(data))
    reader = websocket.ChannelReader()
    return list(reader.channels(data))


def _streams(data: bytes) -> object:
    return list(spdy.Session().receive(data))


def _certificate(data: bytes) -> object:
    return certificatesigningrequest._certificate_problem(formats.base64_text(data))


def _reviewed(data: bytes) -> object:
    """What a webhook says about an object, with its patch."""
    review = reviews._decoded(data, "v1")
    response = reviews._checked(review, "v1", "", mutating=True)
    refused = None if response.allowed else reviews._refusal("w", response.status)
    operations = calling._operations(reviews.Patch(response.patch or "", response.patch_type or ""))
    return refused, patches.json_patch(json.loads(json.dumps(_LIVE)), operations)


_CUSTOM: dict[str, Any] = {"apiVersion": "a.b/v1", "kind": "C", "metadata": {"name": "a", "labels": {"a": "b"}}}


def _converted(data: bytes) -> object:
    review = conversion._decoded(data)
    if conversion._problem(review, "", "v1") or review.response is None:
        return None
    return conversion._converted_object(_CUSTOM, review.response.converted_objects or [], "a.b/v2")


# -- files and outputs


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="kcm-fuzz-")


def _file(read: Callable[[Path], object], data: bytes) -> object:
    path = Path(_folder().name) / "file"
    path.write_bytes(data)
    return read(path)


def _snapshot(data: bytes) -> object:
    return _file(files.load, gzip.compress(data, 0))


def _joined(data: bytes) -> object:
    ours: Any = sandbox_kubeconfig.document("a", "https://localhost", b"ca", {"token": "t"})
    return _file(lambda path: sandbox_kubeconfig.join(path, ours), data)


def _audit(data: bytes) -> object:
    log = AuditLog(Traced("pod", "shop", "web-1"), History())
    log.read(io.BytesIO(data))
    return log.lines, log.bad


def _plugin(data: bytes) -> object:
    chosen = Chosen("c", "c", Cluster(), User(exec=Exec("x", api_version=plugins.API_VERSIONS[0])))
    return plugins.Plugin(chosen, {}, RealClock(), NO_PLUGIN_METRICS, {})._read(data)


def _yaml(read: Callable[[object], object]) -> Callable[[bytes], object]:
    return lambda data: read(yaml.safe_load(data))


def _faults(found: object) -> object:
    return _same(faults_of, lambda faults: [document_of(one) for one in faults], found)


def _configuration(text: str) -> object:
    return configfile.parse(text, COMPONENT_CONFIG, Options)


def _figures(text: str) -> object:
    before, now = figures.read("", 0.0), figures.read(text, 1.0)
    return figures.between(before, now, {}, 0.0)


# -- what users write


def _cron(text: str) -> object:
    return cron.parse(text).next(datetime(2030, 1, 1, tzinfo=UTC))


def _quantity(text: str) -> object:
    read = quantity.parse(text)
    if abs(read.value()) < 10**20:  # upstream writes larger ones without their exponent
        return _same(quantity.parse, str, text)
    return read


def _duration(text: str) -> object:
    return _same(durations.parse_nanoseconds, durations.format_nanoseconds, text)


def _labels(text: str) -> object:
    return _same(labels.parse, str, text)


def _fields(text: str) -> object:
    return fields.parse(text).matches({})


def _time(text: str) -> object:
    return _same(times.parse_time, times.format_micro_time, text)


def _path_of(text: str) -> object:
    return list(jsonpath.parse(text).find({"a": [1, {"b": "c"}], "d": None}))


_SCOPE = {"object": {"a": "1", "n": 3, "list": [1, "x", None, {}], "map": {"k": 1.5}, "time": "2030-01-01T00:00:00Z"}}


def _expression(text: str) -> object:
    return Program(text).evaluate(_SCOPE)


_ENV = {"HOSTNAME": "web-0", "HOME": "/root", "PATH": "/bin"}
_THERE = There({"/d/f": "one\ntwo\n"}, ("/d",), began=datetime(2030, 7, 1, tzinfo=UTC), input="x\n")


def _shell(text: str) -> object:
    words = ("sh", "-c", text)
    simulate.reactions(words, _ENV, _THERE)
    return simulate.answer(words, _ENV, _THERE), simulate.simulate(words, _ENV, _THERE)


def _session(text: str) -> object:
    session = simulate.Session(Opened(("sh",)), _ENV, _THERE)
    return [session.feed(f"{line}\n", _THERE, float(number)) for number, line in enumerate(text.split("\n"))]


def _pair(data: bytes) -> object:
    """What is in PEM: each of the readers refuses it with an error of its own."""
    for read in (key_pairs.certificates, key_pairs.chain, key_pairs.private_key, key_pairs.pair_key):
        try:
            cast("Callable[[bytes], object]", read)(data)
        except FormatError:
            pass
    return key_pairs.public_keys(data), list(pem.blocks(data))


def _each(*reads: Callable[[str], object]) -> Callable[[str], object]:
    """Parsers of the same texts, of which each may refuse them."""

    def run(text: str) -> object:
        for read in reads:
            try:
                read(text)
            except ValueError as error:
                assert type(error) in (ValueError, FormatError), repr(error)
        return None

    return run


_NO_ANSWER = (httptools.HttpParserError, httptools.HttpParserUpgrade, HeadTooLarge, Lost)
_PATCH_TYPES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")

TARGETS: dict[str, Target] = {
    # from API servers
    "JSON": Target(lambda data: _same(codec.decode_doc, codec.encode, data), (codec.DecodeError,)),
    "pod": Target(lambda data: codec.decode(data, PODS.view), (codec.DecodeError,)),
    "deployment": Target(DEPLOYMENTS.decode_or_explain),
    "list": Target(_page, (Unreadable,)),
    "watch": Target(partial(_watch, EventDecoder)),
    "watch in protobuf": Target(partial(_watch, FrameDecoder)),
    "pieces of a watch": Target(lambda data: _Pieces().add(data), (Unreadable,), timed=True),
    "status": Target(errors.from_status, timed=True),
    "lease": Target(_lease, (codec.DecodeError,)),
    "answer": Target(partial(_asked, read=_answer), _NO_ANSWER),
    "answer to CONNECT": Target(partial(_asked, read=lambda answer: answer.status, bodiless=True), _NO_ANSWER),
    "SOCKS": Target(partial(_socks, None), (ProxyRefused,)),
    "SOCKS with a password": Target(partial(_socks, ("a", "b")), (ProxyRefused,)),
    "aggregated discovery": Target(_aggregated, (Unreadable,)),
    "plain discovery": Target(_plain, (Unreadable,)),
    "OpenAPI": Target(_published, (Unreadable,)),
    # from clients
    "request": Target(_request),
    "path": _text(_path),
    "query": _text(_query),
    "Accept": _text(_accepts),
    "body in JSON": Target(partial(_body, "application/json", "Strict"), (Refusal,)),
    "body in YAML": Target(partial(_body, "application/yaml", "Warn"), (Refusal,)),
    "body in protobuf": Target(_protobuf, (FormatError, UnknownForm)),
    "envelope": Target(envelope.opened, (FormatError,)),
    **{media: Target(partial(_patch, media, "Strict"), (Refusal,)) for media in _PATCH_TYPES},
    "apply patch": Target(_apply, (Refusal,)),
    "handshake of a WebSocket": _text(_handshake, ValueError),
    "WebSocket": Target(_messages, (websocket.WebSocketError,), timed=True),
    "SPDY": Target(_streams, (spdy.SpdyError,)),
    "impersonation": Target(_impersonated),
    "token": _text(tokens.TokenVerifier(()).claims, tokens.TokenError),
    "issuer of a token": _text(tokens.unverified_issuer),
    "answer of a webhook": Target(_reviewed, (CallError, reviews.ReviewError, PatchError)),
    "answer of a conversion": Target(_converted, (conversion._Failed, Refusal)),
    # files and outputs of programs
    "output of a FlexVolume driver": Target(lambda data: flex._answer("init", data, 0), (flex.FlexError,)),
    "kubeconfig": Target(partial(_file, lambda path: kubeconfig.read(str(path))), (KubeconfigError,)),
    "kubeconfig that is joined": Target(_joined, (ValueError,)),
    "exec plugin": Target(_plugin, (CredentialsError,)),
    "snapshot": Target(_snapshot, (PlanError,)),
    "flags of a manager": Target(partial(_file, lambda path: flag_files.manager_flags(str(path))), (PlanError,)),
    "manifest": Target(lambda data: list(manifests.parsed(data, "file")), (manifests.ManifestError,)),
    "documents": Target(_text(yaml_documents.documents).parse, (ValueError,)),
    "template of a recycler": Target(partial(_file, lambda path: recycler._template("flag", str(path))), (StartError,)),
    "labels of metrics": Target(partial(_file, lambda path: observability._manifest(str(path))), (RunError,)),
    "configuration": Target(_text(_configuration).parse, (configfile.ConfigFileError,)),
    "audit log": Target(_audit),
    "audit policy": Target(_yaml(policy_of), (ValueError, yaml.YAMLError)),
    "faults": Target(_yaml(_faults), (ValueError, yaml.YAMLError)),
    "rules": Target(_yaml(rules.rules_of), (ValueError, yaml.YAMLError)),
    "causes": Target(lambda data: codec.decode(data, CausesDocument), (codec.DecodeError,)),
    "metrics": _text(_figures, FormatError),
    "PEM": Target(_pair, timed=True),
    "CA bundle": Target(tls.bundle_fault, timed=True),
    "DER": Target(der.split, (FormatError,), timed=True),
    "form of a key": Target(der.key_form, timed=True),
    "certificate request": Target(pkcs10.from_der, (FormatError,), timed=True),
    "certificate request in PEM": Target(pkcs10.from_pem, (FormatError,)),
    "certificate": Target(
        lambda data: certificatesigningrequest._certificate_problem(formats.base64_text(data)), timed=True
    ),
    "nested JSON": Target(nesting.Extents, (nesting.Malformed,), timed=True),
    "JSON of Go": Target(gojson.read, (gojson.SyntaxProblem,), timed=True),
    "JSON in an object": Target(lambda data: gojson.read(b'{"a":' + data), (gojson.SyntaxProblem,), timed=True),
    "YAML": Target(yaml_body.load, (yaml_body.YamlError, BadScalar), timed=True),
    # in objects and on command lines
    "quantity": _text(_quantity, FormatError),
    "duration": _text(_duration, FormatError),
    "time": _text(_time, FormatError),
    "time with fractions": _text(times.parse_micro_time, FormatError),
    "zone": _text(zones.load_zone, FormatError),
    "label selector": _text(_labels, FormatError),
    "label selector of the API": _text(labels.to_label_selector, FormatError),
    "field selector": _text(_fields, FormatError),
    "cron schedule": _text(_cron, FormatError),
    "JSON path": _text(_path_of, FormatError),
    "filter of a JSON path": _text(lambda text: jsonpath.parse(f".a[?({text})]"), FormatError),
    "union of a JSON path": _text(lambda text: jsonpath.parse(f".a[{text}]"), FormatError),
    "pointer of a patch": _text(
        lambda text: patches.json_patch({"a": [1]}, [{"op": "add", "path": text, "value": 1}]), PatchError
    ),
    "address": _text(addresses.parse_ip),
    "CIDR": _text(addresses.parse_cidr),
    "URL": _text(urls.parse, urls.UrlError),
    "URL of a request": _text(urls.parse_request, urls.UrlError),
    "proxy": _text(lambda text: proxies.checked("proxy", text), AccessError),
    "image": _text(images.pull_policy),
    "integer": _text(integers.parse_int64),
    "percentage": _text(intstr.percent_of, FormatError),
    "base64": _text(formats.from_base64, ValueError),
    "expression of Go": _text(lambda text: regexps.compile_go(text[: max(100, len(text) // 8)]), FormatError),
    "CEL": _text(parser.parse, CelSyntaxError),
    "value of CEL": Target(_text(_expression).parse, (CelSyntaxError, CelError)),
    "tokens of CEL": _text(lexer.tokens, CelSyntaxError),
    "shell": _text(syntax.parse, Unknown),
    "run of a shell": Target(_text(_shell).parse),
    "session of a shell": Target(_text(_session).parse),
    "secret of Azure": _text(csi_handles.azure_account),
    "volume of AWS": _text(csi_handles.aws_volume),
    "field path": _text(container_env._split_subscript),
    "iqn": _text(lambda text: volume_sources._IQN["iqn"](f"iqn{text}")),
    "reference to a variable": _text(partial(expansion.expand, env={})),
    "value of a rule": _text(_each(annotations.seconds_of, annotations.number_of)),
    "value of a flag": _text(
        _each(
            *(flag_values.split_list, flag_values.parse_int, flag_values.parse_float, flag_values.parse_map),
            *(flag_values.parse_switches, flag_values.parse_multimap, flag_values.parse_ip, flag_values.parse_bytes),
            *(flag_values.parse_vmodule, flag_values.parse_cert_key, flag_values.parse_version_request),
        )
    ),
    **{
        f"name {rule.__name__}": _text(rule)
        for rule in (names.dns1123_subdomain, names.qualified_name, names.percent, names.wildcard_subdomain)
    },
    "name of a header": _text(names.http_header_name),
    **{f"format {name}": _text(check) for name, check in crd_formats._FORMATS.items()},
}
