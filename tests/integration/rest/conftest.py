"""A tiny HTTPS server and the certificates for it."""

import asyncio
import datetime
import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import uvloop
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

TLS_HELLO = b"\x16"


class Authority:
    """A CA that writes certificates into a folder."""

    def __init__(self, folder: Path, name: str = "ca") -> None:
        self.folder = folder
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        self.certificate = self._sign(self.name, self.key.public_key(), x509.BasicConstraints(True, None))
        self.path = folder / f"{name}.pem"
        self.path.write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *sans: str) -> tuple[Path, Path]:
        """A certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName([_san(san) for san in sans or ("localhost",)])
        certificate = self._sign(_name(name), key.public_key(), names)
        cert_path, key_path = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        cert_path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        key_path.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return cert_path, key_path

    def _sign(self, name, public_key, extension):
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self.name)
            .public_key(public_key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(extension, critical=False)
            .sign(self.key, hashes.SHA256())
        )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _san(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


@dataclass
class Asked:
    """A request as the server got it."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes
    peer: str
    connection: int
    resumed: bool

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


def plain(body: bytes = b"{}", status: str = "200 OK", headers: str = "") -> Answer:
    async def answer(_: Asked, writer: asyncio.StreamWriter) -> None:
        head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
        writer.write(head.encode() + body)

    return answer


@dataclass
class Server:
    """Answers everything with ``answer``, which a test may replace."""

    answer: Answer = field(default_factory=plain)
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    open: int = 0
    port: int = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open += 1
        number = self.connections
        peer = (writer.get_extra_info("peercert") or {}).get("subject", ((("", ""),),))[0][0][1]
        try:
            tls = writer.get_extra_info("ssl_object")
            resumed = tls is not None and bool(tls.session_reused)
            while (asked := await _read(reader, peer, number, resumed=resumed)) is not None:
                self.asked.append(asked)
                await self.answer(asked, writer)
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError) as error:
            writer.write(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n" if "TLS" in str(error) else b"")
        finally:
            self.open -= 1
            writer.close()


async def _read(reader: asyncio.StreamReader, peer: str, connection: int, *, resumed: bool) -> Asked | None:
    first = await reader.read(1)
    if first == TLS_HELLO:
        raise ConnectionError("TLS where plain HTTP is spoken")
    line = (first + await reader.readline()).decode().strip()
    if not line:
        return None
    headers = []
    while header := (await reader.readline()).decode().strip():
        name, _, value = header.partition(":")
        headers.append((name.lower(), value.strip()))
    length = int(dict(headers).get("content-length", 0))
    return Asked(line, headers, await reader.readexactly(length), peer, connection, resumed)


@asynccontextmanager
async def serving(certificate: tuple[Path, Path] | None, client_ca: Path | None = None, host: str = "127.0.0.1"):
    """A running server; without a certificate it speaks plain HTTP."""
    server = Server()
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        if client_ca is not None:
            context.verify_mode = ssl.CERT_OPTIONAL
            context.load_verify_locations(client_ca)
    running = await asyncio.start_server(server.serve, host, 0, ssl=context, backlog=1000)
    server.port = running.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        running.close()
        await asyncio.sleep(0.05)  # for what closing TLS connections leaves behind


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def anyio_backend(request):
    """Each of the two loops, in real time."""
    return "asyncio", {"loop_factory": request.param}


@pytest.fixture(name="serving")
def serving_fixture():
    return serving


@pytest.fixture(name="plain")
def plain_fixture():
    return plain


@pytest.fixture
def another_authority(tmp_path: Path) -> Authority:
    (tmp_path / "other").mkdir()
    return Authority(tmp_path / "other", "other-ca")
