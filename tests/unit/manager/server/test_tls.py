"""The serving certificates and their reloading."""

import base64
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from kcm_cli.component.serving_config import ServingConfig
from kcm_cli.manager.errors import RunError
from kcm_cli.manager.server.certificates import parse_bundle
from kcm_cli.manager.server.tls import ServingTls, Source
from kcm_cli.manager.server.trust import Trust, TrustState
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
        with pytest.raises(RunError, match="not usable"):
            tls.refresh()
        assert tls.context() is before
    trust.replace(TrustState(clients=parse_bundle(sign(ROOT).pem)))  # the contexts are made again, of what was kept
    assert tls.context() is not before
    with pytest.raises(RunError, match="not usable"):
        ServingTls(ServingConfig(), (files.source,), trust)
    files.write()
    assert tls.refresh()


def test_names_in_the_oldest_string_type_are_read(files: Files) -> None:
    """T61String holds Latin-1, as in Go."""
    tls = ServingTls(ServingConfig(), (files.source,), trust := Trust(TrustState()))
    files.write(replace(LEAF, name="aurelie"), lambda signed: odd(signed, LATIN))
    assert tls.refresh()
    before = tls.context()
    trust.replace(TrustState(clients=parse_bundle(odd(sign(replace(ROOT, name="aurelie")), LATIN))))
    assert tls.context() is not before
