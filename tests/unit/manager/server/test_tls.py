"""The serving certificates and their reloading."""

import base64
import errno
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from kcm_cli.component.auth_config import AuthenticationConfig
from kcm_cli.component.clock import LoopClock
from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server import self_signed
from kcm_cli.manager.server.self_signed import Pair, PairInMemory, kept_pair, renew
from kcm_cli.manager.server.tls import ServingTls, Source, make_context, names_in
from kcm_cli.manager.server.trust import Trust, TrustState, from_files
from kcm_cli.rest.ca_bundles import parse_bundle
from tests.trust.cases import LEAF, ROOT, Form, Signed, sign

LATIN = (b"\x0c\x07aurelie", b"\x14\x07aur\xe9lie")
TWICE = (b"\x55\x1d\x25", b"\x55\x1d\x11")  # extKeyUsage becomes subjectAltName


def odd(signed: Signed, change: tuple[bytes, bytes]) -> bytes:
    """A certificate with other bytes in it (PEM). Its signature is not valid any more, which a server does not ask."""
    whole = signed.certificate.public_bytes(Encoding.DER)
    changed = whole.replace(*change)
    assert changed != whole
    return b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(changed) + b"-----END CERTIFICATE-----\n"


class Files:
    """A certificate and its key in files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self.source = Source(folder / "tls.crt", folder / "tls.key")

    def write(self, form: Form = LEAF, pem: Callable[[Signed], bytes] = lambda signed: signed.pem) -> None:
        signed = sign(form)
        assert self.source.cert_file is not None and self.source.key_file is not None
        self.source.cert_file.write_bytes(pem(signed))
        self.source.key_file.write_bytes(signed.secret)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    made = Files(tmp_path)
    made.write()
    return made


def test_a_certificate_that_go_would_not_read_is_not_taken(files: Files) -> None:
    trust = Trust(TrustState())
    tls = ServingTls(ServingConfig(), (files.source,), trust)
    before = tls.context()
    files.write(pem=lambda signed: odd(signed, TWICE))
    for _ in range(2):
        changed, problems = tls.refresh()
        assert (changed, len(problems)) == (False, 1)
        assert "not usable" in problems[0]
        assert tls.context() is before
    trust.replace(TrustState(clients=parse_bundle(sign(ROOT).pem)))  # the contexts are made again, of what was kept
    assert tls.context() is not before
    with pytest.raises(RunError, match="not usable"):
        ServingTls(ServingConfig(), (files.source,), trust)
    files.write()
    assert tls.refresh() == (True, [])


def test_names_in_the_oldest_string_type_are_read(files: Files) -> None:
    """T61String holds Latin-1, as in Go."""
    tls = ServingTls(ServingConfig(), (files.source,), trust := Trust(TrustState()))
    files.write(replace(LEAF, name="aurelie"), lambda signed: odd(signed, LATIN))
    assert tls.refresh() == (True, [])
    before = tls.context()
    trust.replace(TrustState(clients=parse_bundle(odd(sign(replace(ROOT, name="aurelie")), LATIN))))
    assert tls.context() is not before


def test_one_invalid_file_does_not_keep_the_others_from_being_loaded(tmp_path: Path) -> None:
    one, other = Files(tmp_path / "one"), Files(tmp_path / "other")
    one.write()
    other.write()
    tls = ServingTls(ServingConfig(), (one.source, other.source), Trust(TrustState()))
    other.write(pem=lambda signed: b"rubbish")
    assert not tls.refresh()[0]
    one.write()
    changed, problems = tls.refresh()
    assert (changed, len(problems)) == (True, 1)

    clients, proxies = tmp_path / "clients", tmp_path / "proxies"
    config = AuthenticationConfig(client_ca_file=str(clients), requestheader_client_ca_file=str(proxies))
    clients.write_bytes(sign(ROOT).pem)
    proxies.write_bytes(sign(ROOT).pem)
    state, problems = from_files(config)
    assert not problems
    clients.write_bytes(b"rubbish")
    proxies.write_bytes(sign(ROOT).pem)
    later, problems = from_files(config, state)
    assert problems == [f"client-ca-file: {clients} holds no CA certificate"]
    assert later.clients == state.clients
    assert later.proxies != state.proxies


@pytest.mark.parametrize(
    ("common", "used"),
    {
        "server": True,
        "*": True,
        "*.svc.example": True,
        "192.0.2.1": False,
        "192.0.02.1": False,
        "2001:db8::1": False,
        "system:node:a": False,
        "Server": False,
        "a.*.example": False,
        "*.": False,
    }.items(),
)
def test_a_common_name_is_a_server_name_if_it_is_a_dns_name(common: str, used: bool) -> None:
    signed = sign(replace(LEAF, name=common, sans=("a.example", "192.0.2.7")))
    found = names_in(Pair(signed.pem, signed.secret))
    assert set(found) == {"a.example", *([common] if used else [])}


def test_a_folder_that_cannot_be_searched_is_named(tmp_path: Path) -> None:
    """As one of another user's, or one with too long a name."""
    with pytest.raises(RunError, match=r"^cert-dir: cannot write .*: File name too long$"):
        kept_pair(str(tmp_path / ("x" * 300)), "kcm", "127.0.0.1", datetime.now(UTC))


@pytest.mark.parametrize(
    ("issuer", "left", "renewed"),
    [("localhost-ca@1764550000", 0, True), ("localhost-ca@1764550000", 1, False), ("our-ca", 0, False)],
)
def test_only_a_pair_that_was_made_here_is_made_anew_once_it_is_over(
    tmp_path: Path, issuer: str, left: int, renewed: bool
) -> None:
    old = sign(LEAF, sign(replace(ROOT, name=issuer)))
    files = tmp_path / "kcm.crt", tmp_path / "kcm.key"
    files[0].write_bytes(old.pem)
    files[1].write_bytes(old.secret)
    now = old.certificate.not_valid_after_utc - timedelta(seconds=left)
    renew(*files, "127.0.0.1", now)
    made = tuple(file.read_bytes() for file in files)
    assert (made[0] != old.pem, made[1] != old.secret) == (renewed, renewed)
    renew(*files, "127.0.0.1", now)
    assert tuple(file.read_bytes() for file in files) == made
    make_context(ServingConfig(), Pair(*made))


def made_at(folder: Path, when: datetime) -> tuple[Path, Path]:
    return kept_pair(str(folder), "kcm", "127.0.0.1", when)


def test_a_renewal_that_ended_between_its_files_is_made_up_for_at_the_next_start(tmp_path: Path) -> None:
    """The key is new then, and the certificate the old one."""
    now = datetime.now(UTC)
    cert_file, key_file = made_at(tmp_path, now - timedelta(days=366))
    _, other = made_at(tmp_path / "other", now)
    key_file.write_bytes(other.read_bytes())
    assert made_at(tmp_path, now) == (cert_file, key_file)
    make_context(ServingConfig(), Pair(cert_file.read_bytes(), key_file.read_bytes()))


def test_a_pair_that_was_made_by_a_clock_that_was_ahead_is_made_anew(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    for when in (now + timedelta(days=500), now):
        cert_file, _ = made_at(tmp_path, when)
        (certificate, *_) = x509.load_pem_x509_certificates(cert_file.read_bytes())
        assert certificate.not_valid_before_utc < when < certificate.not_valid_after_utc


def test_a_pair_that_cannot_be_made_anew_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a full disk, or in a folder that is mounted read-only: it is served, as upstream serves it."""
    now = datetime.now(UTC)
    files = made_at(tmp_path, now - timedelta(days=366))
    before = [file.read_bytes() for file in files]

    def full(path: Path, mode: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", f"{path}.{time.monotonic()}")

    monkeypatch.setattr(self_signed, "replaced", full)
    assert made_at(tmp_path, now) == files
    with pytest.raises(RunError, match=f"^cert-dir: cannot write {tmp_path}: No space left on device$"):
        renew(*files, "127.0.0.1", now)
    assert [file.read_bytes() for file in files] == before


async def test_a_pair_in_memory_is_made_anew_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime.now(UTC)
    clock = LoopClock()
    monkeypatch.setattr(clock, "now", lambda: now)
    source, shown = Source(pair=PairInMemory("127.0.0.1", clock)), list[bytes]()
    tls = ServingTls(ServingConfig(), (source,), Trust(TrustState()))
    for days in (0, 364, 2, -500):
        now += timedelta(days=days)
        assert tls.refresh() == (days in (2, -500), [])
        (certificate, *_) = x509.load_pem_x509_certificates(source.read().cert)
        assert certificate.not_valid_before_utc < now < certificate.not_valid_after_utc
        shown.append(source.read().cert)
    assert len(set(shown)) == 3
