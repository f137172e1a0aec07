"""TLS contexts of clients, rebuilt when their files change."""

import logging
import os
import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from kcm_cli.component.clock import LoopClock
from kcm_cli.machinery import pem
from kcm_cli.rest import tls
from kcm_cli.rest.errors import TLSFilesError
from kcm_cli.rest.tls import ReloadedContext, TLSFiles, apart, bundle_fault, client_context, connected
from tests.trust.cases import LEAF, ROOT, sign


def test_a_new_certificate_is_used_once_the_ca_file_exists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tls, "RETRY_S", 0.0)
    ca, leaf = sign(ROOT).pem, sign(LEAF)
    path = tmp_path / "ca.crt"
    path.write_bytes(ca)
    shown: list[tuple[bytes, bytes]] = []
    reloaded = ReloadedContext(TLSFiles(ca_file=path), LoopClock(), certificate=lambda: shown[-1] if shown else None)
    before = reloaded.current()
    shown.append((leaf.pem, leaf.secret))
    path.unlink()
    with caplog.at_level(logging.WARNING):
        assert reloaded.current() is before
    assert "Cannot take over a client certificate" in caplog.text
    path.write_bytes(ca)
    after = reloaded.current()
    assert after is not before
    assert reloaded.current() is after


@pytest.mark.parametrize("replaced", [True, False])
def test_a_file_of_the_same_age_and_size_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, replaced: bool
) -> None:
    """As from an image whose files are all of one age, or copied with their times."""
    monkeypatch.setattr(tls, "FILES_PERIOD_S", 0.0)

    def write(path: Path) -> None:
        path.write_bytes(sign(ROOT).pem.ljust(4096, b"\n"))
        os.utime(path, (1, 1))

    path = tmp_path / "ca.crt"
    write(path)
    reloaded = ReloadedContext(TLSFiles(ca_file=path), LoopClock())
    before = reloaded.current()
    assert reloaded.current() is before
    write(tmp_path / "new" if replaced else path)
    if replaced:
        (tmp_path / "new").rename(path)
    assert reloaded.current() is not before


CONTENT = next(pem.certificates(sign(ROOT).pem))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(b"text\n" + sign(ROOT).pem, "", id="after text"),
        pytest.param(pem.encode(pem.CERTIFICATE, b"broken") + sign(ROOT).pem, "", id="after a broken one"),
        pytest.param(b" " + sign(ROOT).pem, "unable to parse bytes as PEM block", id="after a space"),
        pytest.param(
            sign(ROOT).pem.replace(b"-----\n", b"-----\nA: b\n\n", 1),
            "no valid certificate authority data seen",
            id="with a header",
        ),
        pytest.param(
            pem.encode(pem.CERTIFICATE, CONTENT * 2),
            "failed to parse certificate: x509: malformed certificate",
            id="two",
        ),
    ],
)
def test_a_bundle_is_what_go_reads(text: bytes, fault: str) -> None:
    assert bundle_fault(text) == (f"unable to load root certificates: {fault}" if fault else "")


@pytest.mark.parametrize(
    "spoilt",
    [
        pytest.param(lambda pair: (b" " + pair[0], pair[1]), id="no certificate"),
        pytest.param(lambda pair: (pair[0], b" " + pair[1]), id="no key"),
    ],
)
def test_a_client_certificate_is_what_go_reads(spoilt: Callable[[tuple[bytes, bytes]], tuple[bytes, bytes]]) -> None:
    leaf = sign(LEAF)
    client_context(TLSFiles(cert_data=b"text\n" + leaf.pem, key_data=b"text\n" + leaf.secret, insecure=True))
    cert, key = spoilt((leaf.pem, leaf.secret))
    with pytest.raises(TLSFilesError, match="no usable certificate and key in PEM"):
        client_context(TLSFiles(cert_data=cert, key_data=key, insecure=True))


def refused(code: int) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code = code
    return error


async def tried(context: ssl.SSLContext, answers: dict[int, int]) -> list[int]:
    """The numbers of the contexts that were tried for one connection: 0 is the context itself. answers: the codes of
    those that do not trust the server."""
    numbers, asked = {context: 0}, list[int]()

    async def connect(one: ssl.SSLContext) -> int:
        asked.append(numbers.setdefault(one, len(numbers)))
        if (code := answers.get(asked[-1])) is not None:
            raise refused(code)
        return asked[-1]

    for make in context.others():  # type: ignore[attr-defined]
        numbers.setdefault(make(), len(numbers))
    try:
        assert await connected(context, connect) == asked[-1]
    except ssl.SSLCertVerificationError as error:
        asked.append(-error.verify_code)
    return asked


async def test_the_context_by_which_a_server_was_trusted_is_tried_first() -> None:
    context = client_context(TLSFiles(ca_data=b"".join(sign(ROOT).pem for _ in range(3))))
    assert await tried(context, {0: 7, 1: 7}) == [0, 1, 2]
    assert await tried(context, {0: 7, 1: 7}) == [2]
    assert await tried(context, {0: 7, 2: 7}) == [2, 0, 1]  # another API server, whose certificate is of another CA
    assert await tried(context, {0: 7, 1: 7, 2: 7, 3: 7}) == [1, 0, 2, 3, -7]


async def test_what_is_not_about_the_issuer_is_final() -> None:
    context = client_context(TLSFiles(ca_data=sign(ROOT).pem + sign(ROOT).pem))
    assert await tried(context, {0: 62}) == [0, -62]
    assert await tried(context, {0: 7, 1: 62, 2: 7}) == [0, 1, 2, -62]
    assert await tried(context, {0: 10, 1: 62, 2: 7}) == [0, 1, 2, -62]
    assert await tried(context, {0: 10, 1: 7, 2: 7}) == [0, 1, 2, -10]
    assert await tried(context, {0: 10}) == [0, 1]


def test_certificates_of_one_name_are_tried_one_by_one_and_a_hundred_at_most() -> None:
    one = next(pem.certificates(sign(ROOT).pem))
    assert apart([one]) == []
    many = [next(pem.certificates(sign(ROOT).pem)) for _ in range(101)]
    other = next(pem.certificates(sign(LEAF).pem))
    assert apart([*many, other]) == [(one, other) for one in many[:100]]
