"""Certificates and keys in PEM files: which blocks count, and which errors end the reading."""

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from kcm_cli.component import key_pairs
from kcm_cli.machinery import der, pem
from kcm_cli.machinery.errors import FormatError
from tests.trust.cases import LEAF, ROOT, sign

CA, OTHER = sign(ROOT), sign(LEAF)
CONTENT = next(pem.certificates(CA.pem))
WITH_HEADER = CA.pem.replace(b"-----BEGIN CERTIFICATE-----\n", b"-----BEGIN CERTIFICATE-----\nA: b\n\n")
BROKEN = pem.encode(pem.CERTIFICATE, b"broken")
KEY = ec.generate_private_key(ec.SECP256R1())


def key(form: serialization.PrivateFormat, *, kind: str = "") -> bytes:
    content = KEY.private_bytes(serialization.Encoding.DER, form, serialization.NoEncryption())
    return pem.encode(kind or der.key_form(content), content)


PKCS8, SEC1 = key(serialization.PrivateFormat.PKCS8), key(serialization.PrivateFormat.TraditionalOpenSSL)
PARAMETERS = pem.encode("EC PARAMETERS", b"\x06\x08\x2a\x86\x48\xce\x3d\x03\x01\x07")


@pytest.mark.parametrize(
    ("text", "count"),
    [
        pytest.param(CA.pem, 1, id="one"),
        pytest.param(CA.pem + b"text\n" + OTHER.pem, 2, id="two and text"),
        pytest.param(WITH_HEADER + OTHER.pem, 1, id="one has a header"),
        pytest.param(b" " + CA.pem + OTHER.pem, 1, id="one is no block"),
        pytest.param(PKCS8 + CA.pem, 1, id="after a key"),
        pytest.param(WITH_HEADER, 0, id="only one with a header"),
        pytest.param(b"", 0, id="empty"),
        pytest.param(CA.pem + BROKEN, 0, id="one is broken"),
        pytest.param(pem.encode(pem.CERTIFICATE, CONTENT + CONTENT), 0, id="two in one block"),
    ],
)
def test_certificates_of_a_bundle(text: bytes, count: int) -> None:
    if not count:
        with pytest.raises(FormatError, match="not a PEM certificate"):
            key_pairs.certificates(text)
        return
    assert len(key_pairs.certificates(text)) == count


def test_a_chain_may_have_headers() -> None:
    assert key_pairs.chain(WITH_HEADER + PKCS8 + OTHER.pem) == [CA.certificate, OTHER.certificate]
    with pytest.raises(FormatError, match="not a PEM certificate"):
        key_pairs.chain(PKCS8)


@pytest.mark.parametrize("text", [PKCS8, SEC1, PARAMETERS + SEC1, BROKEN + PKCS8], ids=["8", "1", "EC", "other"])
def test_a_private_key_may_follow_other_blocks(text: bytes) -> None:
    for read in (key_pairs.private_key, key_pairs.pair_key):
        assert read(text).public_key() == KEY.public_key()


def test_the_block_of_a_private_key_names_its_form_except_in_pairs() -> None:
    text = key(serialization.PrivateFormat.PKCS8, kind="RSA PRIVATE KEY")
    assert key_pairs.pair_key(text).public_key() == KEY.public_key()
    for wrong in (text, PARAMETERS, b""):
        with pytest.raises(FormatError, match="not an unencrypted PEM key"):
            key_pairs.private_key(wrong)
    broken = pem.encode("PRIVATE KEY", b"broken")
    assert key_pairs.private_key(broken + PKCS8).public_key() == KEY.public_key()
    with pytest.raises(FormatError, match="not an unencrypted PEM key"):
        key_pairs.pair_key(broken + PKCS8)


def test_public_keys_are_those_of_keys_and_certificates() -> None:
    public = pem.encode("PUBLIC KEY", _public())
    found = key_pairs.public_keys(PARAMETERS + SEC1 + BROKEN + public + CA.pem)
    assert found == [KEY.public_key(), KEY.public_key(), CA.certificate.public_key()]


def _public() -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return KEY.public_key().public_bytes(serialization.Encoding.DER, form)
