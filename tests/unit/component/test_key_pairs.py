"""Certificates and keys in PEM files: which blocks count, and which errors end the reading."""

import math

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

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


NUMBERS = rsa.generate_private_key(65537, 2048).private_numbers()


def rsa_key(**changed: int) -> bytes:
    """A key of which some numbers were changed, in PKCS #1."""
    numbers = {name: getattr(NUMBERS, name) for name in ("p", "q", "d", "dmp1", "dmq1", "iqmp")}
    numbers |= {"n": NUMBERS.public_numbers.n} | changed
    order = (0, numbers["n"], 65537, *(numbers[name] for name in ("d", "p", "q", "dmp1", "dmq1", "iqmp")))
    return pem.encode("RSA PRIVATE KEY", der.element(der.SEQUENCE, *(der.integer(number) for number in order)))


def close_primes() -> dict[str, int]:
    """Numbers of a key whose factors are next to each other; that they are no primes is not looked at."""
    p = (3 << 1022) + 1
    while math.gcd(p - 1, 65537) != 1 or math.gcd(p + 1, 65537) != 1 or math.gcd(p, p + 2) != 1:
        p += 2
    q = p + 2
    d = pow(65537, -1, math.lcm(p - 1, q - 1))
    return {"n": p * q, "p": p, "q": q, "d": d, "dmp1": d % (p - 1), "dmq1": d % (q - 1), "iqmp": pow(q, -1, p)}


def test_the_numbers_of_an_rsa_key_are_compared_as_in_go() -> None:
    assert isinstance(key_pairs.private_key(rsa_key()), rsa.RSAPrivateKey)


@pytest.mark.parametrize("name", ["n", "p", "q", "d", "dmp1", "dmq1", "iqmp"])
def test_an_rsa_key_of_which_a_number_is_wrong_is_refused(name: str) -> None:
    right = NUMBERS.public_numbers.n if name == "n" else getattr(NUMBERS, name)
    with pytest.raises(FormatError):
        key_pairs.pair_key(rsa_key(**{name: right + 2}))


def test_an_rsa_key_with_close_primes_is_refused() -> None:
    with pytest.raises(FormatError, match="too close"):
        key_pairs.pair_key(rsa_key(**close_primes()))
