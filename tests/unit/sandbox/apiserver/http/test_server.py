"""How requests and answers of the sandbox's port are read and written. The connection: tests/unit/serving."""

import gzip
from contextlib import suppress
from datetime import timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from OpenSSL import SSL

from kcm_cli.component.certificates import issue, name_of
from kcm_cli.sandbox.apiserver.http.server import tls_context
from kcm_cli.sandbox.apiserver.security.certificates import Certificates, KeyPair
from tests.kit.echo import connected
from tests.kit.simulation import EPOCH

pytestmark = pytest.mark.real_time


def test_an_rsa_certificate_is_shown_with_its_chain() -> None:
    """As kube-apiserver's --tls-cert-file may have it."""
    made, key, name = Certificates.load(None, EPOCH), rsa.generate_private_key(65537, 2048), name_of("localhost")
    own = issue(name, key, name, key, EPOCH, EPOCH + timedelta(days=1))  # type: ignore[arg-type]
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    made.serving = KeyPair(own.public_bytes(Encoding.PEM) + made.ca.certificate, secret)
    server, client = SSL.Connection(tls_context(made)), SSL.Connection(SSL.Context(SSL.TLS_CLIENT_METHOD))
    server.set_accept_state()
    client.set_connect_state()
    for _ in range(4):
        for one, other in ((client, server), (server, client)):
            with suppress(SSL.WantReadError):
                one.do_handshake()
            with suppress(SSL.WantReadError):
                other.bio_write(one.bio_read(1 << 16))
    shown = client.get_peer_cert_chain(as_cryptography=True)
    assert shown == [own, *x509.load_pem_x509_certificates(made.ca.certificate)]


async def test_invalid_parameters_are_ignored() -> None:
    async with connected() as client:
        client.send(b"GET /x?a=1;b=2&c=%zz&d=%20;&e=%41 HTTP/1.1\r\nhost: a\r\n\r\n")
        assert (await client.json())["query"] == [["e", "A"]]


async def test_of_repeated_users_to_impersonate_the_first_one_counts() -> None:
    async with connected() as client:
        names = (b"group: g", b"uid: 1", b"user: a", b"group: h", b"uid: 2", b"user: b")
        client.send(b"GET /x HTTP/1.1\r\nhost: a\r\n" + b"".join(b"impersonate-%s\r\n" % name for name in names))
        client.send(b"\r\n")
        assert (await client.json())["as"] == ["g\nh", "1", "a"]


async def test_large_responses_are_compressed_if_accepted() -> None:
    async with connected() as client:
        client.send(b"GET /big HTTP/1.1\r\nhost: a\r\naccept-encoding: gzip\r\n\r\n")
        client.send(b"GET /big HTTP/1.1\r\nhost: a\r\n\r\n")
        _status, headers, body = await client.answer()
        assert "Content-Encoding: gzip" in headers
        assert gzip.decompress(body) == b"x" * 200_000
        assert (await client.answer())[2] == b"x" * 200_000


@pytest.mark.parametrize(
    ("path", "accepted", "compressed"),
    [
        ("/big", "gzip;q=0", False),
        ("/big", "br, gzip;q=0.5", True),
        ("/big", "identity, gzipped", False),
        ("/api/big", "gzip;q=0", False),
        ("/api/big", "br, gzip;q=0.5", False),
        ("/api/big", "deflate, gzip", True),
    ],
)
async def test_what_accepts_gzip(path: str, accepted: str, compressed: bool) -> None:
    async with connected() as client:
        client.send(f"GET {path} HTTP/1.1\r\nhost: a\r\naccept-encoding: {accepted}\r\n\r\n".encode())
        _status, headers, _body = await client.answer()
        assert ("Content-Encoding: gzip" in headers) == compressed
