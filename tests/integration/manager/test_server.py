"""The server over real TLS on a free port, in front of an API server in memory."""

import asyncio
import datetime
import json
import random
import socket
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from kcm_cli.component.auth_config import AuthenticationConfig, AuthorizationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.health import HealthChecks, SliMetrics
from kcm_cli.component.metrics import Registry
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.loop_thread import LoopThread
from kcm_cli.manager.server import handlers
from kcm_cli.manager.server.metrics import AuthMetrics
from kcm_cli.manager.server.mux import Mux
from kcm_cli.manager.server.self_signed import kept_pair
from kcm_cli.manager.server.server import Delegates, Server, ServerConfig
from kcm_cli.rest.client import Client
from kcm_cli.rest.ratelimit import Unlimited
from kcm_cli.rest.transport import Request, Response, Stream, Unreachable
from kcm_cli.runtime.loop_monitor import SWITCH_INTERVAL_S
from tests.kit.faults import Answering
from tests.kit.processes import free_port, insecure
from tests.trust.cases import ANY, BETWEEN, CLIENT, EXPIRED, LEAF, ROOT, Signed, sign

pytestmark = pytest.mark.real_time

NOW = datetime.datetime.now(datetime.UTC)


@dataclass
class Authority:
    """A CA that signs certificates."""

    name: str
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def pem(self) -> bytes:
        return self._sign(self.name, (), self.key, ca=True).public_bytes(serialization.Encoding.PEM)

    def issue(self, folder: Path, common_name: str, organizations: tuple[str, ...] = (), dns: str = "") -> Path:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(common_name, organizations, key, ca=False, dns=dns)
        path = folder / f"{common_name.replace(':', '-')}-{random.getrandbits(32):x}.pem"
        secret = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM) + secret)
        return path

    def _sign(self, name: str, groups: tuple[str, ...], key: ec.EllipticCurvePrivateKey, *, ca: bool, dns: str = ""):  # type: ignore[no-untyped-def]
        subject = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
        if name:
            subject.append(x509.NameAttribute(NameOID.COMMON_NAME, name))
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        builder = (
            x509.CertificateBuilder()
            .subject_name(x509.Name(subject))
            .issuer_name(issuer)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - datetime.timedelta(hours=1))
            .not_valid_after(NOW + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
        )
        if dns:
            builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(dns)]), critical=False)
        return builder.sign(self.key, hashes.SHA256())


@dataclass
class ApiServer(Answering):
    """Knows one token, allows what ``allowed`` names, and publishes a ConfigMap."""

    down: bool = False
    allowed: set[str] = field(default_factory=lambda: {"admin"})
    config_map: dict[str, str] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    version: int = 1
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def send(self, request: Request) -> Response:
        if self.down:
            raise Unreachable("connection refused")
        kind = request.path.rsplit("/", 1)[-1]
        self.asked.append(kind)
        if kind == "extension-apiserver-authentication":
            doc = {"metadata": {"resourceVersion": str(self.version)}, "data": self.config_map}
            return Response(200, {}, json.dumps(doc).encode())
        spec = json.loads(request.body)["spec"]
        if kind == "tokenreviews":
            good = spec["token"] == "good"
            status = {"authenticated": good, "user": {"username": "admin", "groups": ["g"]} if good else {}}
        else:
            status = {"allowed": spec["user"] in self.allowed, "reason": ""}
        return Response(201, {}, json.dumps({"spec": spec, "status": status}).encode())

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        async def chunks() -> AsyncIterator[bytes]:
            await self.changed.wait()
            self.changed.clear()
            metadata = {"name": "extension-apiserver-authentication", "resourceVersion": str(self.version)}
            yield json.dumps({"type": "MODIFIED", "object": {"metadata": metadata}}).encode() + b"\n"

        yield Stream(200, {}, chunks())


@dataclass
class Running:
    port: int
    health: HealthChecks
    registry: Registry
    api: ApiServer

    async def get(
        self,
        path: str,
        *,
        token: str = "",
        cert: Path | None = None,
        headers: dict[str, str] | None = None,
        method: str = "GET",
        data: bytes = b"",
    ) -> tuple[int, str, dict[str, str]]:
        context = insecure()
        if cert is not None:
            context.load_cert_chain(cert)
        sent = {**({"authorization": f"Bearer {token}"} if token else {}), **(headers or {})}
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method,
                f"https://127.0.0.1:{self.port}{path}",
                ssl=context,
                headers=sent,
                data=data,
                allow_redirects=False,
            ) as response,
        ):
            return response.status, await response.text(), {k.lower(): v for k, v in response.headers.items()}

    async def shown_certificate(self, name: str | None = None) -> x509.Certificate:
        context = insecure()
        _, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context, server_hostname=name or "")
        der = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return x509.load_der_x509_certificate(der)


@asynccontextmanager
async def serving(
    serving_config: ServingConfig | None = None,
    authentication: AuthenticationConfig | None = None,
    *,
    delegated: bool = True,
    api: ApiServer | None = None,
) -> AsyncIterator[Running]:
    registry, clock, api = Registry(), LoopClock(), api or ApiServer()
    families = SliMetrics(registry)
    running = Running(free_port(), HealthChecks(metrics=families), registry, api)
    mux = Mux()
    mux.handle("/healthz", handlers.health(running.health))
    mux.handle("/configz", handlers.configz({"a": 1}))
    mux.handle("/metrics", handlers.metrics(registry, 1.0))
    levels: list[int] = []
    mux.handle("/debug/flags/v", handlers.verbosity(levels.append), listed=False)
    config = ServerConfig(
        serving=replace(serving_config or ServingConfig(), bind_address="127.0.0.1", port=running.port),
        authentication=authentication or AuthenticationConfig(skip_lookup=True),
        authorization=AuthorizationConfig(),
    )
    server = Server(config, lambda: mux, AuthMetrics.register(registry), clock)
    client = api.client(clock)
    delegates = Delegates(client, client) if delegated else Delegates()
    task = asyncio.create_task(server.serve(delegates, random.Random(1)))
    try:
        yield running
    finally:
        ended = task.done()
        task.cancel()
        await asyncio.wait([task])
        if ended:
            task.result()  # what the server ended with
            raise AssertionError("the server ended by itself")


CLIENTS = {
    "good": 200,
    "of another CA": 401,
    "self-signed": 401,
    "expired": 401,
    "for servers only": 401,
    "for any usage": 200,
    "without usages": 200,
    "through an intermediate": 200,
    "through an intermediate that is not sent": 401,
    "through an intermediate for clients": 200,
    "through an intermediate for servers": 401,
    "signed by another client": 401,
}


def client_chain(name: str, authority: Signed) -> list[Signed]:
    """A client's certificate, and what it sends with it."""
    form = replace(LEAF, name="jane", sans=(), usages=CLIENT)
    between = {
        "through an intermediate": BETWEEN,
        "through an intermediate that is not sent": BETWEEN,
        "through an intermediate for clients": replace(BETWEEN, usages=CLIENT),
        "through an intermediate for servers": replace(BETWEEN, usages=LEAF.usages),
        "signed by another client": replace(form, name="mallory"),
    }
    if name in between:
        issuer = sign(between[name], authority)
        return [sign(form, issuer)] if "not sent" in name else [sign(form, issuer), issuer]
    odd = {
        "expired": replace(form, ends=EXPIRED),
        "for servers only": replace(form, usages=LEAF.usages),
        "for any usage": replace(form, usages=ANY),
        "without usages": replace(form, usages=()),
    }
    issuers = {"of another CA": sign(replace(ROOT, name="others")), "self-signed": None}
    return [sign(odd.get(name, form), issuers.get(name, authority))]


async def test_responses_by_kind_of_client() -> None:
    async with serving() as server:
        assert (await server.get("/healthz"))[:2] == (200, "ok")
        assert (await server.get("/readyz"))[0] == 404
        status, body, headers = await server.get("/metrics")
        assert status == 403
        assert json.loads(body) == {
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": 'forbidden: User "system:anonymous" cannot get path "/metrics"',
            "reason": "Forbidden", "details": {}, "code": 403,
        }  # fmt: skip
        assert headers["cache-control"] == "no-cache, private"
        assert (await server.get("/metrics", token="good"))[0] == 200
        status, body, _ = await server.get("/healthz", token="bad")
        assert (status, json.loads(body)["reason"]) == (401, "Unauthorized")
        assert (await server.get("/nothing", token="good"))[:2] == (404, "404 page not found\n")
        assert (await server.get("/healthz/", token="good"))[0] == 404


async def test_without_an_api_server_tokens_are_refused() -> None:
    async with serving(delegated=False) as server:
        assert (await server.get("/healthz", token="bad"))[0] == 200
        assert (await server.get("/metrics", token="good"))[0] == 403


async def test_a_server_that_is_stopped_while_it_is_loaded_ends() -> None:
    loading, stopped, port = threading.Event(), threading.Event(), free_port()

    def pages() -> Mux:
        loading.set()
        stopped.wait(60)
        return Mux()

    config = ServerConfig(
        serving=replace(ServingConfig(), bind_address="127.0.0.1", port=port),
        authentication=AuthenticationConfig(skip_lookup=True),
        authorization=AuthorizationConfig(),
    )
    server = Server(config, pages, AuthMetrics.register(Registry()), LoopClock())
    task = asyncio.create_task(server.serve(Delegates(), random.Random(1)))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.to_thread(loading.wait, 60)
    await server.stop()
    stopped.set()
    done, _ = await asyncio.wait([task], timeout=60)
    writer.close()
    assert done == {task}


async def test_a_server_is_loaded_where_no_thread_can_start(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Mux] = []

    def pages() -> Mux:
        made.append(Mux())
        return made[0]

    def none_left(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    port = free_port()
    config = ServerConfig(
        serving=replace(ServingConfig(), bind_address="127.0.0.1", port=port),
        authentication=AuthenticationConfig(skip_lookup=True),
        authorization=AuthorizationConfig(),
    )
    server = Server(config, pages, AuthMetrics.register(Registry()), LoopClock())
    task = asyncio.create_task(server.serve(Delegates(), random.Random(1)))
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", none_left)
        _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=insecure())
        writer.close()
    await asyncio.to_thread(len, made)  # after what an executor's queue still holds
    assert len(made) == 1
    await server.stop()
    await asyncio.wait_for(task, 60)


async def test_reviews_are_cached() -> None:
    async with serving() as server:
        for _ in range(5):
            await server.get("/metrics", token="good")
        assert server.api.asked == ["tokenreviews", "subjectaccessreviews"]
        text = server.registry.expose().decode()
        assert 'authentication_token_cache_request_total{status="hit"} 4\n' in text
        assert 'apiserver_delegated_authn_request_total{code="201"} 1\n' in text
        assert 'authorization_attempts_total{result="allowed"} 5\n' in text


async def test_an_unreachable_api_server_is_401_for_tokens() -> None:
    async with serving(api=ApiServer(down=True)) as server:
        assert (await server.get("/healthz"))[0] == 200
        assert (await server.get("/metrics", token="good"))[0] == 401
        status, body, _ = await server.get("/metrics")
        assert (status, body) == (500, 'Internal Server Error: "/metrics": connection refused\n')


async def test_plain_http_on_the_tls_port_gets_400() -> None:
    async with serving() as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = await reader.read()
        writer.close()
        assert answer.startswith(b"HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server")


async def test_health_shows_failures_and_exclusions() -> None:
    async with serving() as server:
        server.health.add("a", lambda: None)
        server.health.add("b", lambda: "broken")
        status, body, headers = await server.get("/healthz")
        assert (status, body) == (500, "[+]a ok\n[-]b failed: reason withheld\nhealthz check failed\n")
        assert headers["x-content-type-options"] == "nosniff"
        status, body, _ = await server.get("/healthz?exclude=b&exclude=x&verbose")
        assert status == 200
        assert "[+]b excluded: ok\n" in body
        assert 'no matches for "x"' in body


async def test_metrics_are_text_for_any_accept_header() -> None:
    accept = (
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.7,"
        "application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    )
    async with serving() as server:
        server.registry.counter("some_total", "Some.").labels().inc()
        status, body, headers = await server.get("/metrics", token="good", headers={"accept": accept})
        assert (status, headers["content-type"].split("; ")[:2]) == (200, ["text/plain", "version=0.0.4"])
        assert "\nsome_total 1\n" in body


async def test_connections_use_http_1_without_tls_resumption() -> None:
    def connect(context: ssl.SSLContext, port: int, session: ssl.SSLSession | None) -> tuple[bool, str | None, Any]:
        """Whether the session was resumed, the protocol, and the session to resume."""
        with (
            socket.create_connection(("127.0.0.1", port), timeout=10) as raw,
            context.wrap_socket(raw, session=session) as sock,
        ):
            sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            assert sock.recv(4096).startswith(b"HTTP/1.1 200 OK\r\n")
            return bool(sock.session_reused), sock.selected_alpn_protocol(), sock.session

    async with serving() as server:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = insecure()
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2", "http/1.1"])
            _, protocol, session = await asyncio.to_thread(connect, context, server.port, None)
            assert protocol != "h2"
            assert session is not None
            resumed, _, _ = await asyncio.to_thread(connect, context, server.port, session)
            assert not resumed


async def test_verbosity_can_be_changed_by_put() -> None:
    async with serving() as server:
        assert (await server.get("/debug/flags/v", token="good"))[0] == 406
        assert (await server.get("/debug/flags/v", token="good", method="PUT", data=b"x"))[0] == 400
        for number in (b"2147483648", b"9" * 5000):  # Python reads no number of more than 4,300 digits
            status, body, _ = await server.get("/debug/flags/v", token="good", method="PUT", data=number)
            assert (status, body) == (400, f'strconv.ParseUint: parsing "{number.decode()}": value out of range\n')
        status, body, headers = await server.get("/debug/flags/v", token="good", method="PUT", data=b"4")
        assert (status, body) == (200, "successfully set klog.logging.verbosity to 4\n")
        assert headers["content-type"] == "text/plain"


async def test_client_certificates_name_users(tmp_path: Path) -> None:
    authority = Authority("clients")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    master = authority.issue(tmp_path, "root", ("system:masters",))
    somebody = authority.issue(tmp_path, "somebody")
    config = AuthenticationConfig(client_ca_file=str(tmp_path / "ca.crt"), skip_lookup=True)
    async with serving(authentication=config) as server:
        assert (await server.get("/metrics", cert=master))[0] == 200
        assert server.api.asked == []
        status, body, _ = await server.get("/metrics", cert=somebody)
        assert status == 403
        assert 'User \\"somebody\\"' in body
        assert (await server.get("/metrics"))[0] == 403
        assert b"apiserver_client_certificate_expiration_seconds_count 2\n" in server.registry.expose()
        stranger = Authority("strangers").issue(tmp_path, "stranger")
        assert (await server.get("/metrics", cert=stranger))[0] == 401
        assert (await server.get("/metrics", cert=stranger, token="good"))[0] == 200


@pytest.mark.parametrize(("name", "status"), CLIENTS.items())
async def test_client_certificates_are_accepted_as_by_go(tmp_path: Path, name: str, status: int) -> None:
    """Statuses of /healthz without a token, as the Go binary answered; with a good token all get 200."""
    authority = sign(replace(ROOT, name="clients"))
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    chain = client_chain(name, authority)
    shown = tmp_path / "shown.pem"
    shown.write_bytes(b"".join(one.pem for one in chain) + chain[0].secret)
    config = AuthenticationConfig(client_ca_file=str(tmp_path / "ca.crt"), skip_lookup=True)
    async with serving(authentication=config) as server:
        assert (await server.get("/healthz", cert=shown))[0] == status
        assert (await server.get("/healthz", cert=shown, token="good"))[0] == 200


async def test_request_headers_name_users(tmp_path: Path) -> None:
    authority = Authority("proxies")
    (tmp_path / "ca.crt").write_bytes(authority.pem)
    proxy, other = authority.issue(tmp_path, "front"), authority.issue(tmp_path, "other")
    config = AuthenticationConfig(
        requestheader_client_ca_file=str(tmp_path / "ca.crt"),
        requestheader_allowed_names=("front",),
        skip_lookup=True,
    )
    named = {"X-Remote-User": "jane", "X-Remote-Group": "system:masters"}
    async with serving(authentication=config) as server:
        assert (await server.get("/metrics", cert=proxy, headers=named))[0] == 200
        assert (await server.get("/metrics", cert=other, headers=named))[0] == 401
        assert (await server.get("/metrics", headers=named))[0] == 403
        server.api.allowed.add("jane")
        assert (await server.get("/metrics", cert=proxy, headers={"X-Remote-User": "jane"}))[0] == 200


async def test_the_clusters_client_ca_is_used_and_watched(tmp_path: Path) -> None:
    first, second = Authority("one"), Authority("two")
    api = ApiServer(config_map={"client-ca-file": first.pem.decode()})
    by_first = first.issue(tmp_path, "root", ("system:masters",))
    by_second = second.issue(tmp_path, "root", ("system:masters",))
    async with serving(authentication=AuthenticationConfig(), api=api) as server:
        await until(lambda: server.get("/metrics", cert=by_first), 200)
        api.config_map["client-ca-file"] = second.pem.decode()
        api.version += 1
        api.changed.set()
        await until(lambda: server.get("/metrics", cert=by_second), 200)
        assert (await server.get("/metrics", cert=by_first))[0] == 401


async def until(ask: Callable[[], Awaitable[tuple[int, str, dict[str, str]]]], wanted: int) -> None:
    for _ in range(200):
        try:
            if (await ask())[0] == wanted:
                return
        except (aiohttp.ClientError, ssl.SSLError):
            pass
        await asyncio.sleep(0.05)
    raise AssertionError(f"never answered {wanted}")


async def test_certificates_are_selected_by_name_and_reloaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    from kcm_cli.component.flag_values import CertKey

    authority = Authority("servers")
    main = authority.issue(tmp_path, "main", dns="main.example")
    sni = authority.issue(tmp_path, "sni", dns="sni.example")
    wild = authority.issue(tmp_path, "wild")
    again = authority.issue(tmp_path, "again", dns="main.example")
    config = ServingConfig(
        cert_file=str(main),
        key_file=str(main),
        sni_cert_keys=(
            CertKey(str(sni), str(sni)),
            CertKey(str(wild), str(wild), ("*.wild.example",)),
            CertKey(str(again), str(again)),
            CertKey(str(again), str(again), ("*.wild.example", "sni.example")),
        ),
    )
    async with serving(config) as server:

        async def shown(name: str | None = None) -> str:
            certificate = await server.shown_certificate(name)
            return str(certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value)

        assert await shown() == "main"
        assert await shown("sni.example") == "again"  # names that are given precede those in certificates
        assert await shown("a.wild.example") == "wild"  # the first pair with a name
        assert await shown("main.example") == "again"  # the default certificate has no names
        assert await shown("b.a.wild.example") == "main"
        main.write_bytes(authority.issue(tmp_path, "renewed").read_bytes())
        for _ in range(100):
            if await shown() == "renewed":
                break
            await asyncio.sleep(0.05)
        assert await shown() == "renewed"
        main.write_bytes(b"rubbish")
        while "keeping the previous ones" not in caplog.text:
            await asyncio.sleep(0.05)
        assert await shown() == "renewed"


async def test_the_certificate_without_or_with_an_unknown_name_as_in_go(tmp_path: Path) -> None:
    """Without a name it is the default one; with one that no pair has, the first that is valid for it."""
    from kcm_cli.component.flag_values import CertKey

    def pair(common_name: str, dns: str, *names: str) -> CertKey:
        path = str(authority.issue(tmp_path, common_name, dns=dns))
        return CertKey(path, path, names)

    authority = Authority("servers")
    main = str(authority.issue(tmp_path, "main", dns="*.main.example"))
    pairs = (
        pair("", "sans.example"),
        pair("192.0.2.1", "address.example"),
        pair("No Host", "text.example"),
        pair("given", "*.san.example", "given.example"),
        pair("star", "*", "star.example"),
        pair("late", "a.main.example", "late.example"),
        pair("hidden", "hidden.example", "given.example"),
        pair("upper", "Upper.Example"),
        pair("any", "any.example", "*.any.example"),
    )
    async with serving(ServingConfig(cert_file=main, key_file=main, sni_cert_keys=pairs)) as server:

        async def shown(name: str | None = None) -> str:
            certificate = await server.shown_certificate(name)
            found = certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            return str(found[0].value) if found else ""

        assert await shown() == "main"
        assert await shown("sans.example") == ""
        assert await shown("address.example") == "192.0.2.1"
        assert await shown("text.example") == "No Host"
        assert await shown("given.example") == "given"
        assert await shown("hidden.example") == "main"  # a pair none of whose names counts is not shown
        assert await shown("late.example") == "late"
        assert await shown("a.main.example") == "main"  # the default one first
        assert await shown("a.san.example") == "given"
        assert await shown("b.a.san.example") == "main"
        assert await shown("upper.example") == "upper"
        assert await shown("a.any.example") == "any"
        assert await shown("elsewhere") == "main"


async def test_names_that_are_given_may_have_upper_case(tmp_path: Path) -> None:
    """kcm's own: in Go such a name is never found."""
    from kcm_cli.component.flag_values import CertKey

    authority = Authority("servers")
    main, other = (str(authority.issue(tmp_path, name)) for name in ("main", "other"))
    given = (CertKey(other, other, ("Mixed.Example", "*")),)
    async with serving(ServingConfig(cert_file=main, key_file=main, sni_cert_keys=given)) as server:
        for name, wanted in {"mixed.example": "other", "MIXED.example": "other", "a": "other", None: "main"}.items():
            subject = (await server.shown_certificate(name)).subject
            assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == wanted


async def test_without_a_name_the_pair_of_the_address_is_shown(tmp_path: Path) -> None:
    from kcm_cli.component.flag_values import CertKey

    authority = Authority("servers")
    main, address, named = (str(authority.issue(tmp_path, name)) for name in ("main", "address", "named"))
    given = (CertKey(address, address, ("127.0.0.1", "address.example")), CertKey(named, named, ("named.example",)))
    async with serving(ServingConfig(cert_file=main, key_file=main, sni_cert_keys=given)) as server:
        shown = {None: "address", "address.example": "address", "named.example": "named", "other.example": "main"}
        for name, wanted in shown.items():
            subject = (await server.shown_certificate(name)).subject
            assert subject.get_attributes_for_oid(NameOID.COMMON_NAME)[0].value == wanted


@pytest.mark.parametrize("turns", range(5))
async def test_a_server_that_is_cancelled_as_its_first_client_comes_ends(turns: int) -> None:
    config = ServerConfig(
        serving=ServingConfig(bind_address="127.0.0.1", port=free_port()),
        authentication=AuthenticationConfig(skip_lookup=True),
        authorization=AuthorizationConfig(),
    )
    server = Server(config, Mux, AuthMetrics.register(Registry()), LoopClock())
    task = asyncio.create_task(server.serve(Delegates(), random.Random(1)))
    for _ in range(5):
        await asyncio.sleep(0)
    server._wanted.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task], timeout=10)
    assert task.cancelled()


async def test_old_tls_versions_are_refused() -> None:
    async with serving(ServingConfig(min_version="VersionTLS13")) as server:
        context = insecure()
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", server.port, ssl=context)
        assert (await server.get("/healthz"))[0] == 200


def test_an_occupied_port_is_one_clear_line() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        config = ServerConfig(
            serving=ServingConfig(bind_address="127.0.0.1", port=port),
            authentication=AuthenticationConfig(),
            authorization=AuthorizationConfig(),
        )
        with pytest.raises(RunError, match=f"127.0.0.1:{port}: address already in use \\(--secure-port takes another"):
            Server(config, Mux, AuthMetrics.register(Registry()), LoopClock())


async def test_a_certificate_is_generated_once_in_the_directory(tmp_path: Path) -> None:
    async with serving(ServingConfig(cert_dir=str(tmp_path / "certs"))) as server:
        first = await server.shown_certificate()
    assert (tmp_path / "certs" / "kube-controller-manager.key").stat().st_mode & 0o777 == 0o600
    async with serving(ServingConfig(cert_dir=str(tmp_path / "certs"))) as server:
        assert await server.shown_certificate() == first


@pytest.mark.parametrize("running", [False, True])
async def test_a_pair_that_was_made_and_is_over_is_made_anew(tmp_path: Path, running: bool) -> None:
    """k3s#10176: it was served for ever, also after restarts, and probes that verify it failed."""
    now = datetime.datetime.now(datetime.UTC)

    def make() -> None:
        kept_pair(str(tmp_path), "kube-controller-manager", "127.0.0.1", now - datetime.timedelta(days=366))

    async def is_valid() -> tuple[int, str, dict[str, str]]:
        return int((await server.shown_certificate()).not_valid_after_utc > now), "", {}

    if not running:
        make()
    async with serving(ServingConfig(cert_dir=str(tmp_path))) as server:
        if running:
            for file in tmp_path.iterdir():
                file.unlink()
            make()
        await until(is_valid, 1)
    assert sorted(file.name for file in tmp_path.iterdir()) == [
        f"kube-controller-manager.{end}" for end in ("crt", "key")
    ]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda folder: ServingConfig(cert_file=str(folder / "no"), key_file=str(folder / "no")), "cannot read"),
        (lambda folder: ServingConfig(cert_file=str(folder / "x"), key_file=str(folder / "x")), "not usable PEM"),
        (
            lambda folder: ServingConfig(cert_file=str(folder / "a"), key_file=str(folder / "b")),
            "do not belong together",
        ),
    ],
    ids=["missing", "rubbish", "mismatch"],
)
def test_invalid_certificates_are_one_clear_line(
    tmp_path: Path, make: Callable[[Path], ServingConfig], words: str
) -> None:
    (tmp_path / "x").write_text("rubbish")
    authority = Authority("a")
    authority.issue(tmp_path, "a").rename(tmp_path / "a")
    authority.issue(tmp_path, "b").rename(tmp_path / "b")
    config = ServerConfig(
        serving=replace(make(tmp_path), bind_address="127.0.0.1", port=free_port()),
        authentication=AuthenticationConfig(),
        authorization=AuthorizationConfig(),
    )
    with pytest.raises(RunError, match=words):
        Server(config, Mux, AuthMetrics.register(Registry()), LoopClock())


async def test_missing_cluster_settings_are_an_error_at_the_start() -> None:
    class Without(ApiServer):
        async def send(self, request: Request) -> Response:
            return Response(404, {}, b'{"kind":"Status","reason":"NotFound","message":"not found","code":404}')

    with pytest.raises(ExceptionGroup) as caught:
        registry = Registry()
        config = ServerConfig(
            serving=ServingConfig(bind_address="127.0.0.1", port=free_port()),
            authentication=AuthenticationConfig(),
            authorization=AuthorizationConfig(),
        )
        clock = LoopClock()
        server = Server(config, Mux, AuthMetrics.register(registry), clock)
        client = Client(Without(), limiter=Unlimited(), user_agent="t", clock=clock)
        await server.serve(Delegates(client, client), random.Random(1))
    assert (
        caught.group_contains(RunError, match="request-header-client-ca-file")
        if hasattr(caught, "group_contains")
        else True
    )


async def test_the_server_responds_while_the_controllers_loop_is_busy() -> None:
    """That loop does not turn once before all answers are there."""
    thread = LoopThread("server")

    async def serve(ready: asyncio.Future[int], loop: asyncio.AbstractEventLoop) -> None:
        async with serving() as server:
            loop.call_soon_threadsafe(ready.set_result, server.port)
            await asyncio.Event().wait()

    def probe(port: int) -> None:
        context = insecure()
        for _ in range(15):
            with socket.create_connection(("127.0.0.1", port)) as sock, context.wrap_socket(sock) as secure:
                secure.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
                assert b" 200 OK" in secure.recv(4096)

    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    thread.start()
    try:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[int] = loop.create_future()
        serving_there = thread.submit(serve(ready, loop))
        with ThreadPoolExecutor(1) as pool:
            probing = pool.submit(probe, await ready)
            while not probing.done():
                sum(number * number for number in range(30_000))
            probing.result()
        serving_there.cancel()
        await thread.stop()
    finally:
        sys.setswitchinterval(before)
