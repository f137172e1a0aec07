"""Handshakes on memory buffers, in a process that may have no memory that is writable and executable."""

import ctypes
import ssl
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from OpenSSL import SSL

from kcm_cli.serving import openssl_callbacks
from kcm_cli.serving.openssl_callbacks import NoCallbacksError, switch_by_name
from kcm_cli.serving.tls_transport import server_context
from tests.kit.places import ROOT as PROJECT
from tests.kit.processes import insecure
from tests.trust.cases import LEAF, ROOT, Signed, sign

CA = sign(ROOT)
PR_SET_MDWE, REFUSE_EXEC_GAIN = 65, 1


def server(shown: Signed, authorities: tuple[Signed, ...] = ()) -> SSL.Context:
    context = server_context([one.certificate for one in authorities])
    context.use_certificate(shown.certificate)
    context.use_privatekey(shown.key)
    return context


def shake(context: SSL.Context, caller: ssl.SSLContext, name: str = "a", step: int = 1 << 16) -> ssl.SSLObject:
    """A handshake, in which the server receives ``step`` bytes at a time. Returns the client's end."""
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    client, connection = caller.wrap_bio(to_client, to_server, server_hostname=name), SSL.Connection(context)
    connection.set_accept_state()
    for _ in range(4):
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            pass
        sent = to_server.read()
        for start in range(0, len(sent), step):
            connection.bio_write(sent[start : start + step])
            try:
                connection.do_handshake()
            except SSL.WantReadError:
                pass
        try:
            to_client.write(connection.bio_read(1 << 16))
        except SSL.WantReadError:
            pass
    peer = connection.get_peer_certificate(as_cryptography=True)
    client.context.peer = peer  # type: ignore[attr-defined]
    return client


def client(folder: Path, *versions: ssl.TLSVersion, shown: Signed | None = None) -> ssl.SSLContext:
    context = insecure()
    for version in versions:
        context.minimum_version = context.maximum_version = version
    if shown is not None:
        (folder / "client.pem").write_bytes(shown.pem + shown.secret)
        context.load_cert_chain(folder / "client.pem")
    return context


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("step", [1, 1 << 16])
def test_a_certificate_of_any_issuer_is_accepted(tmp_path: Path, version: ssl.TLSVersion, step: int) -> None:
    stranger = sign(replace(LEAF, name="jane", sans=()), sign(replace(ROOT, name="others")))
    context = client(tmp_path, version, shown=stranger)
    shake(server(CA), context, step=step)
    assert context.peer == stranger.certificate  # type: ignore[attr-defined]


def test_the_issuers_are_named() -> None:
    caller = SSL.Context(SSL.TLS_CLIENT_METHOD)
    one, connection = SSL.Connection(caller), SSL.Connection(server(CA, (CA, CA)))
    one.set_connect_state()
    connection.set_accept_state()
    for _ in range(3):
        for talks, listens in ((one, connection), (connection, one)):
            try:
                talks.do_handshake()
            except SSL.WantReadError:
                pass
            try:
                listens.bio_write(talks.bio_read(1 << 16))
            except SSL.WantReadError:
                pass
    assert [name.der() for name in one.get_client_ca_list()] == [CA.certificate.subject.public_bytes()]


@pytest.mark.parametrize(
    ("offered", "chosen"),
    [(["http/1.1"], "http/1.1"), (["h2", "http/1.1"], "http/1.1"), ([], None), (["h2"], ssl.SSLError)],
)
def test_http_1_is_chosen(tmp_path: Path, offered: list[str], chosen: str | type[Exception] | None) -> None:
    context = client(tmp_path)
    if offered:
        context.set_alpn_protocols(offered)
    if isinstance(chosen, type):
        with pytest.raises(SSL.Error):
            shake(server(CA), context)
    else:
        assert shake(server(CA), context).selected_alpn_protocol() == chosen


def test_a_connection_goes_on_with_the_context_of_its_server_name(tmp_path: Path) -> None:
    first, second, asked = server(CA), server(sign(replace(ROOT, name="b"))), list[str]()

    def find(name: str) -> SSL.Context | None:
        asked.append(name)
        return second if name == "b" else None

    switch_by_name(first, find)
    for name in ("a", "b", ""):
        shake(first, client(tmp_path), name or "127.0.0.1")
    assert asked == ["a", "b", ""]
    shown = shake(first, client(tmp_path), "b").getpeercert(binary_form=True)
    assert shown == second_der(second)


def second_der(context: SSL.Context) -> bytes:
    return shown if (shown := shake(context, insecure()).getpeercert(binary_form=True)) is not None else b""


def test_no_memory_is_writable_and_executable() -> None:
    """This whole file, in a process to which the kernel gives none."""
    if ctypes.CDLL(None).prctl(66, 0, 0, 0, 0) < 0:  # PR_GET_MDWE
        pytest.skip("the kernel (before 6.3) has no PR_SET_MDWE")
    if ctypes.CDLL(None).prctl(66, 0, 0, 0, 0):
        return  # this is that process
    code = (
        f"import ctypes, sys, pytest; assert ctypes.CDLL(None).prctl({PR_SET_MDWE}, {REFUSE_EXEC_GAIN}, 0, 0, 0) == 0; "
        f"sys.exit(pytest.main(['-q', '-x', '-p', 'no:cacheprovider', {__file__!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout


def test_a_library_without_such_functions_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(function: object) -> object:
        raise MemoryError

    monkeypatch.setattr(openssl_callbacks, "_Verify", none)
    monkeypatch.setattr(openssl_callbacks, "_shared", {})
    with pytest.raises(NoCallbacksError, match="libffi 3.4 or later, or run without MemoryDenyWriteExecute$"):
        server_context([])
