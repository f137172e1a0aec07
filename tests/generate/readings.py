"""Records how Go reads odd PEM texts and certificate requests: ``python -m tests.generate.readings``, with Go 1.26.

``python -m tests.generate.readings fuzz`` compares random texts and requests instead, until it is interrupted.
"""

import itertools
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from kcm_cli.machinery import der
from tests.kit.places import ROOT
from tests.unit.machinery.test_pem import blocks_of
from tests.unit.planning.test_pkcs10 import differences

RECORDED = ROOT / "tests" / "recorded" / "readings"
E = der.element

# --- PEM

BEGIN, END = b"-----BEGIN X-----", b"-----END X-----"
GOOD = b"-----BEGIN X-----\nQUJD\n-----END X-----\n"
OTHER = b"-----BEGIN Y-----\nREVG\n-----END Y-----\n"
TEXTS: Mapping[str, bytes] = {
    "nothing": b"",
    "no block": b"some text\n",
    "one block": GOOD,
    "no newline at the end": GOOD[:-1],
    "two blocks": GOOD + OTHER,
    "text before, between and after": b"a\n" + GOOD + b"b\n" + OTHER + b"c\n",
    "a character before BEGIN": b"#" + GOOD + OTHER,
    "a space before BEGIN": b" " + GOOD + OTHER,
    "a tab before BEGIN": b"\t" + GOOD + OTHER,
    "a carriage return before BEGIN": b"\r" + GOOD + OTHER,
    "a byte order mark before BEGIN": b"\xef\xbb\xbf" + GOOD + OTHER,
    "a NUL before BEGIN": b"\0" + GOOD + OTHER,
    "carriage returns": GOOD.replace(b"\n", b"\r\n"),
    "only carriage returns": GOOD.replace(b"\n", b"\r"),
    "two carriage returns": GOOD.replace(b"\n", b"\r\r\n"),
    "junk after END": b"-----BEGIN X-----\nQUJD\n-----END X-----junk\n" + OTHER,
    "spaces after END": b"-----BEGIN X-----\nQUJD\n-----END X----- \t \n" + OTHER,
    "a carriage return after END, no newline": b"-----BEGIN X-----\nQUJD\n-----END X-----\r",
    "a form feed after END": b"-----BEGIN X-----\nQUJD\n-----END X-----\f\n" + OTHER,
    "END in the middle of a line": b"-----BEGIN X-----\nQUJD-----END X-----\n" + OTHER,
    "END after a space": b"-----BEGIN X-----\nQUJD\n -----END X-----\n" + OTHER,
    "BEGIN and base64 on one line": b"-----BEGIN X-----QUJD\n-----END X-----\n" + OTHER,
    "BEGIN, base64 and END on one line": b"-----BEGIN X-----QUJD-----END X-----\n" + OTHER,
    "spaces after BEGIN": b"-----BEGIN X----- \t\nQUJD\n-----END X-----\n",
    "junk after BEGIN": b"-----BEGIN X-----junk\nQUJD\n-----END X-----\n" + OTHER,
    "four dashes": b"----BEGIN X----\nQUJD\n----END X----\n" + OTHER,
    "six dashes": b"------BEGIN X------\nQUJD\n------END X------\n" + OTHER,
    "six dashes at the end": b"-----BEGIN X------\nQUJD\n-----END X------\n" + OTHER,
    "another type at END": b"-----BEGIN X-----\nQUJD\n-----END Y-----\n" + OTHER,
    "a longer type at END": b"-----BEGIN X-----\nQUJD\n-----END XX-----\n" + OTHER,
    "a type in small letters": b"-----BEGIN x-----\nQUJD\n-----END X-----\n" + OTHER,
    "no type": b"-----BEGIN -----\nQUJD\n-----END -----\n",
    "no space before the type": b"-----BEGINX-----\nQUJD\n-----ENDX-----\n" + OTHER,
    "two spaces before the type": b"-----BEGIN  X-----\nQUJD\n-----END  X-----\n",
    "a space after the type": b"-----BEGIN X -----\nQUJD\n-----END X-----\n" + OTHER,
    "dashes in the type": b"-----BEGIN X-----Y-----\nQUJD\n-----END X-----Y-----\n",
    "a type that is not UTF-8": b"-----BEGIN \xff-----\nQUJD\n-----END \xff-----\n",
    "no END": b"-----BEGIN X-----\nQUJD\n" + OTHER,
    "no END, and no other block": b"-----BEGIN X-----\nQUJD\n",
    "no BEGIN": b"QUJD\n-----END X-----\n" + OTHER,
    "BEGIN twice": b"-----BEGIN Z-----\nQUJD\n" + GOOD,
    "a block in a block": b"-----BEGIN Z-----\n" + GOOD + b"-----END Z-----\n" + OTHER,
    "END twice": GOOD + b"-----END X-----\n" + OTHER,
    "END twice at once": b"-----BEGIN X-----\nQUJD\n-----END X----------END X-----\n" + OTHER,
    "a block after END": b"\n-----END -----BEGIN X-----\nQUJD\n-----END X-----\n",
    "empty": b"-----BEGIN X-----\n-----END X-----\n",
    "empty lines": b"-----BEGIN X-----\n\n\n-----END X-----\n",
    "empty with END on BEGIN's line": b"-----BEGIN X----------END X-----\n" + OTHER,
    "not base64": b"-----BEGIN X-----\nQU?D\n-----END X-----\n" + OTHER,
    "base64 of URLs": b"-----BEGIN X-----\n-_-_\n-----END X-----\n" + OTHER,
    "base64 without padding": b"-----BEGIN X-----\nQQ\n-----END X-----\n" + OTHER,
    "base64 with too little padding": b"-----BEGIN X-----\nQQ=\n-----END X-----\n" + OTHER,
    "base64 with too much padding": b"-----BEGIN X-----\nQQ===\n-----END X-----\n" + OTHER,
    "base64 with padding in the middle": b"-----BEGIN X-----\nQQ==QQ==\n-----END X-----\n" + OTHER,
    "padding on its own line": b"-----BEGIN X-----\nQQ=\n=\n-----END X-----\n",
    "base64 with loose bits": b"-----BEGIN X-----\nQR==\n-----END X-----\n",
    "only padding": b"-----BEGIN X-----\n====\n-----END X-----\n" + OTHER,
    "spaces in base64": b"-----BEGIN X-----\nQ U\tJ D\n-----END X-----\n",
    "a vertical tab in base64": b"-----BEGIN X-----\nQU\vJD\n-----END X-----\n" + OTHER,
    "a NUL in base64": b"-----BEGIN X-----\nQU\0JD\n-----END X-----\n" + OTHER,
    "base64 on one long line": b"-----BEGIN X-----\n" + b"QUJD" * 100 + b"\n-----END X-----\n",
    "base64 on lines of three": b"-----BEGIN X-----\nQUJ\nDQU\nJDQ\nUJD\n-----END X-----\n",
    "headers": b"-----BEGIN X-----\nA: b\nC: d:e\n\nQUJD\n-----END X-----\n",
    "headers without an empty line": b"-----BEGIN X-----\nA: b\nQUJD\n-----END X-----\n",
    "headers and nothing else": b"-----BEGIN X-----\nA: b\n-----END X-----\n" + OTHER,
    "headers, an empty line and nothing else": b"-----BEGIN X-----\nA: b\n\n-----END X-----\n",
    "a header after base64": b"-----BEGIN X-----\nQUJD\nA: b\n-----END X-----\n" + OTHER,
    "the same header twice": b"-----BEGIN X-----\nA: b\nA: c\n\nQUJD\n-----END X-----\n",
    "a header without a key": b"-----BEGIN X-----\n: b\n\nQUJD\n-----END X-----\n",
    "a header of two lines": b"-----BEGIN X-----\nA: b,\n c\n\nQUJD\n-----END X-----\n" + OTHER,
    "a header with wide spaces": "-----BEGIN X-----\n\u2003A\u00a0:\u0085b\n\nQUJD\n-----END X-----\n".encode(),
    "a header with a carriage return": b"-----BEGIN X-----\r\nA: b\r\n\r\nQUJD\r\n-----END X-----\r\n",
    "a colon in the type": b"-----BEGIN X:Y-----\nQUJD\n-----END X:Y-----\n",
    "a colon in the type, empty": b"-----BEGIN X:Y-----\n-----END X:Y-----\n" + OTHER,
    "headers to the end": b"-----BEGIN X:Y-----\n-----END X:Y-----\nA: b\n",
    "headers beyond END": b"-----BEGIN X:Y-----\n-----END X:Y-----\nA: b\n" + GOOD,
    "a bad block, then headers": b"-----BEGIN X-----\n?\n-----END X-----\nA: b\n" + OTHER,
    "END without a newline before the next BEGIN": GOOD[:-1] + OTHER,
    "empty lines between blocks": GOOD + b"\n\n\r\n" + OTHER,
    "a request after a certificate": GOOD.replace(b"X", b"CERTIFICATE") + GOOD.replace(b"X", b"CERTIFICATE REQUEST"),
}
TOKENS = (
    *(b"-----BEGIN ", b"-----END ", b"-----", b"\n", b"\n", b"\n", b"\r\n", b"\r", b" ", b"\t", b"X", b"A: b", b":"),
    *(b"QUJD", b"QQ==", b"Q", b"=", BEGIN + b"\n", b"\n" + END + b"\n", GOOD, b"\xc2\x85", b"\xff", b"#", b"-", b"\0"),
    *(b"-----BEGIN Y-----\r\nA: b\r\n\r\nQUJD\r\n-----END Y-----\r\n", END, BEGIN, b"\n-----END ", b"\v"),
)


def random_text(chance: random.Random) -> bytes:
    text = bytearray(b"".join(chance.choices(TOKENS, k=chance.randrange(1, 20))))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(text) + 1)
        text[at : at + chance.randrange(3)] = chance.choice(TOKENS)
    return bytes(text)


# --- certificate requests

ED = ed25519.Ed25519PrivateKey.from_private_bytes(b"k" * 32)
EC = ec.derive_private_key(12345678901234567890, ec.SECP256R1())
P224 = ec.derive_private_key(12345678901234567890, ec.SECP224R1())
NULL = E(der.NULL)
MASTERS, NODES, NODE = b"system:masters", b"system:nodes", b"system:node:n1"
CN, ORG, OU, C, SERIAL = "2.5.4.3", "2.5.4.10", "2.5.4.11", "2.5.4.6", "2.5.4.5"
UTF8, NUMERIC, PRINTABLE, T61, IA5, BMP, GENERAL, UNIVERSAL = 12, 18, 19, 20, 22, 30, 27, 28
SAN, REQUEST, CHALLENGE = "2.5.29.17", "1.2.840.113549.1.9.14", "1.2.840.113549.1.9.7"
EMAIL, DNS, URI, IP = 0x81, 0x82, 0x86, 0x87


def algorithm(name: str, *parameters: bytes) -> bytes:
    return E(der.SEQUENCE, der.oid(name), *parameters)


def public(key: Any) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return bytes(key.public_key().public_bytes(serialization.Encoding.DER, form))


def part(kind: str, value: bytes, tag: int = UTF8) -> bytes:
    return E(der.SEQUENCE, der.oid(kind), E(tag, value))


def name(*parts: bytes) -> bytes:
    return E(der.SEQUENCE, *(E(der.SET, one) for one in parts))


def extension(kind: str, value: bytes, *flags: bytes) -> bytes:
    return E(der.SEQUENCE, der.oid(kind), *flags, E(der.OCTET_STRING, value))


def asking(*extensions: bytes, kind: str = REQUEST) -> bytes:
    return E(der.SEQUENCE, der.oid(kind), E(der.SET, E(der.SEQUENCE, *extensions)))


def sans(*names: bytes) -> bytes:
    return asking(extension(SAN, E(der.SEQUENCE, *names)))


def request(
    subject: bytes = name(part(ORG, NODES), part(CN, NODE)),
    attributes: bytes = b"",
    *,
    key: Any = ED,
    scheme: bytes = algorithm("1.3.101.112"),
    sign: Any = ED.sign,
    version: bytes = der.integer(0),
    spki: bytes | None = None,
    context: bytes | None = None,
    more: bytes = b"",
    outside: bytes = b"",
    after: bytes = b"",
) -> bytes:
    listed = E(0xA0, attributes) if context is None else context
    info = E(der.SEQUENCE, version, subject, public(key) if spki is None else spki, listed, more)
    return E(der.SEQUENCE, info, scheme, der.bit_string(sign(info)), outside) + after


def of_ec(key: ec.EllipticCurvePrivateKey, kind: str, digest: hashes.HashAlgorithm) -> bytes:
    return request(key=key, scheme=algorithm(kind), sign=lambda data: key.sign(data, ec.ECDSA(digest)))


def of_rsa(key: rsa.RSAPrivateKey, kind: str, digest: hashes.HashAlgorithm, **fields: Any) -> bytes:
    scheme = algorithm(kind, NULL)
    return request(key=key, scheme=scheme, sign=lambda data: key.sign(data, padding.PKCS1v15(), digest), **fields)


def of_pss(key: rsa.RSAPrivateKey, salt: int, stated: int | None = None) -> bytes:
    digest = algorithm("2.16.840.1.101.3.4.2.1", NULL)
    mask = algorithm("1.2.840.113549.1.1.8", digest)
    number = der.integer(salt if stated is None else stated)
    parameters = E(der.SEQUENCE, E(0xA0, digest), E(0xA1, mask), E(0xA2, number))
    scheme = padding.PSS(padding.MGF1(hashes.SHA256()), salt)
    return request(
        key=key,
        scheme=algorithm("1.2.840.113549.1.1.10", parameters),
        sign=lambda data: key.sign(data, scheme, hashes.SHA256()),
    )


def long_form(data: bytes) -> bytes:
    """The same element with a length that has a superfluous octet."""
    return data[:1] + b"\x81" + data[1:]


def requests() -> Iterator[tuple[str, bytes]]:
    key = rsa.generate_private_key(65537, 2048)
    small = rsa.generate_private_key(65537, 1024)
    yield "a kubelet's", request()
    yield "of ECDSA", of_ec(EC, "1.2.840.10045.4.3.2", hashes.SHA256())
    yield "of P-224", of_ec(P224, "1.2.840.10045.4.3.2", hashes.SHA256())
    yield "of ECDSA with SHA-1", of_ec(EC, "1.2.840.10045.4.1", hashes.SHA1())
    yield "of RSA", of_rsa(key, "1.2.840.113549.1.1.11", hashes.SHA256())
    yield "of RSA with SHA-1", of_rsa(key, "1.2.840.113549.1.1.5", hashes.SHA1())
    yield "of RSA with SHA-1 by its other OID", of_rsa(key, "1.3.14.3.2.29", hashes.SHA1())
    yield "of RSA with MD5", of_rsa(key, "1.2.840.113549.1.1.4", hashes.MD5())
    yield "of RSA with 1,024 bits", of_rsa(small, "1.2.840.113549.1.1.11", hashes.SHA256())
    yield (
        "of RSA without parameters of the key",
        of_rsa(key, "1.2.840.113549.1.1.11", hashes.SHA256(), spki=public(key).replace(NULL, b"", 1)),
    )
    yield "of RSA-PSS", of_pss(key, 32)
    yield "of RSA-PSS with another salt", of_pss(key, 20)
    yield "of RSA-PSS that states another salt", of_pss(key, 20, stated=32)
    yield "of a key with which it is not signed", request(key=EC)
    yield "with a wrong signature", request(sign=lambda data: bytes(64))
    yield "of an unknown algorithm", request(scheme=algorithm("1.2.3"))
    yield "of Ed25519 with parameters", request(scheme=algorithm("1.3.101.112", NULL))

    yield "without a subject", request(name())
    yield "with two common names", request(name(part(ORG, NODES), part(CN, b"a"), part(CN, NODE)))
    yield (
        "with two common names in one set",
        request(E(der.SEQUENCE, E(der.SET, part(CN, NODE), part(CN, b"a")), E(der.SET, part(ORG, NODES)))),
    )
    yield "with an empty common name last", request(name(part(CN, NODE), part(CN, b"")))
    yield "with a common name that is no text last", request(name(part(CN, NODE), part(CN, b"\x01", der.INTEGER)))
    yield "with an organization that is no text", request(name(part(ORG, MASTERS, der.OCTET_STRING), part(ORG, NODES)))
    yield (
        "with an organization in BER",
        request(
            E(
                der.SEQUENCE,
                E(der.SET, E(der.SEQUENCE, der.oid(ORG), E(0x2C, E(UTF8, MASTERS)))),
                E(der.SET, part(CN, NODE)),
            )
        ),
    )
    yield (
        "with organizations out of order",
        request(name(part(ORG, b"b"), part(CN, b"x"), part(ORG, b"a"), part(ORG, b"a"))),
    )
    yield "with an empty organization", request(name(part(ORG, b""), part(ORG, NODES)))
    yield "with an empty set", request(E(der.SEQUENCE, E(der.SET), E(der.SET, part(ORG, NODES))))
    yield "with an unknown attribute", request(name(part("2.5.4.12", b"boss"), part(CN, b"x")))
    yield "with a longer OID", request(name(part("2.5.4.10.1", MASTERS), part("2.5.4.3.3", NODE), part(ORG, NODES)))
    yield (
        "with an OID that is not minimal",
        request(name(E(der.SEQUENCE, b"\x06\x04\x55\x04\x80\x0a", E(UTF8, MASTERS)), part(CN, b"x"))),
    )
    yield "with an OID beyond 31 bits", request(name(part("2.5.4.4294967306", MASTERS), part(CN, b"x")))
    yield (
        "with junk in an attribute",
        request(name(E(der.SEQUENCE, der.oid(ORG), E(UTF8, NODES), E(UTF8, MASTERS)), part(CN, b"x"))),
    )
    yield "with junk after the subject", request(name(part(CN, b"x")) + name(part(ORG, MASTERS)))
    yield "with a set for a sequence", request(E(der.SET, E(der.SET, part(CN, b"x"))))
    for tag in (UTF8, NUMERIC, PRINTABLE, T61, IA5, BMP, GENERAL, UNIVERSAL, 26, 23, 24):
        for what, value in (
            *(("letters", b"ab"), ("digits", b"1 2"), ("Latin-1", b"\xe9"), ("UTF-8", b"\xc3\xa9"), ("a NUL", b"a\0")),
            *(("a wildcard", b"*&"), ("an @", b"a@b"), ("UTF-16", b"\0a\0b"), ("a terminator", b"\0a\0\0")),
        ):
            yield f"with an organization of type {tag}: {what}", request(name(part(ORG, value, tag), part(CN, b"x")))
    yield "with a surrogate", request(name(part(ORG, b"\xd8\0\xdc\0", BMP)))
    yield "with an astral character", request(name(part(ORG, "\U0001f600".encode())))
    yield "with a noncharacter", request(name(part(ORG, b"\xff\xfe", BMP)))
    yield "with a time in the subject", request(name(part(ORG, b"261128120000Z", der.UTC_TIME), part(CN, b"x")))

    yield "with DNS names", request(attributes=sans(E(DNS, b"b"), E(DNS, b"a.example.com"), E(DNS, b"")))
    yield (
        "with all names",
        request(attributes=sans(E(URI, b"spiffe://a/b"), E(IP, b"\1\2\3\4"), E(EMAIL, b"a@b"), E(DNS, b"a"))),
    )
    yield "with names and no subject", request(name(), sans(E(DNS, b"a")))
    yield "with no names in the extension", request(attributes=sans())
    yield "with an IPv4 address in IPv6", request(attributes=sans(E(IP, bytes(10) + b"\xff\xff\1\2\3\4")))
    yield "with an IPv6 address", request(attributes=sans(E(IP, b"\1" * 16)))
    yield "with an address of five bytes", request(attributes=sans(E(IP, b"\1\2\3\4\5")))
    yield "with a DNS name beyond ASCII", request(attributes=sans(E(DNS, "é".encode())))
    yield "with a NUL in a DNS name", request(attributes=sans(E(DNS, b"a\0b")))
    yield "with another kind of name", request(attributes=sans(E(0xA0, der.oid("1.2.3"), E(0xA0, E(UTF8, b"x")))))
    yield "with a name of a wrong class", request(attributes=sans(E(2, b"a"), E(0xA2, b"b")))
    for uri in (
        *(b"", b"spiffe://a/b", b"urn:a:b", b"https://h:80/p?q=1#f", b"a://b_-c/x;y=z", b"mailto:a@b"),
        *(
            b"HTTP://A/%41?x#f",
            b"http://a.",
            b"//x",
            b"spiffe://a/?",
            b"a://b..c/",
            b"a://u@b/",
            b"a b",
            b"http://[::1]/",
        ),
        *(b"http://a/%zz", b"a:/b", b"a://", b"x/y", b"http://a/\x7f", b"http://a/b c", b'http://a/"'),
    ):
        yield f"with the URI {uri!r}", request(attributes=sans(E(URI, uri)))
    yield (
        "with the extension twice",
        request(
            attributes=asking(
                extension(SAN, E(der.SEQUENCE, E(DNS, b"a"))), extension(SAN, E(der.SEQUENCE, E(DNS, b"b")))
            )
        ),
    )
    yield "with the attribute twice", request(attributes=sans(E(DNS, b"a")) + sans(E(DNS, b"b")))
    yield (
        "with the attribute twice, different",
        request(attributes=sans(E(DNS, b"a")) + asking(extension("2.5.29.15", b"\x03\x02\x07\x80"))),
    )
    yield (
        "with two values in the attribute",
        request(
            attributes=E(
                der.SEQUENCE,
                der.oid(REQUEST),
                E(
                    der.SET,
                    E(der.SEQUENCE, extension(SAN, E(der.SEQUENCE, E(DNS, b"a")))),
                    E(der.SEQUENCE, extension(SAN, E(der.SEQUENCE, E(DNS, b"b")))),
                ),
            )
        ),
    )
    yield "with no value in the attribute", request(attributes=E(der.SEQUENCE, der.oid(REQUEST), E(der.SET)))
    yield (
        "with a challenge",
        request(attributes=E(der.SEQUENCE, der.oid(CHALLENGE), E(der.SET, E(UTF8, b"x"))) + sans(E(DNS, b"a"))),
    )
    yield "with an attribute that is none", request(attributes=E(UTF8, b"x") + sans(E(DNS, b"a")))
    yield (
        "with the names in an attribute of another kind",
        request(attributes=asking(extension(SAN, E(der.SEQUENCE, E(DNS, b"a"))), kind="1.3.6.1.4.1.311.2.1.14")),
    )
    yield (
        "with an attribute in a sequence",
        request(attributes=E(der.SEQUENCE, der.oid(REQUEST), E(der.SEQUENCE, E(der.SEQUENCE)))),
    )
    yield (
        "with a critical extension",
        request(attributes=asking(extension(SAN, E(der.SEQUENCE, E(DNS, b"a")), E(der.BOOLEAN, b"\xff")))),
    )
    yield (
        "with an extension that is critical in BER",
        request(attributes=asking(extension(SAN, E(der.SEQUENCE, E(DNS, b"a")), E(der.BOOLEAN, b"\1")))),
    )
    yield (
        "with junk after the names",
        request(attributes=asking(extension(SAN, E(der.SEQUENCE, E(DNS, b"a")) + E(der.SEQUENCE, E(DNS, b"b"))))),
    )
    yield (
        "with junk after the extensions",
        request(attributes=E(der.SEQUENCE, der.oid(REQUEST), E(der.SET, E(der.SEQUENCE)), E(der.SET))),
    )
    yield "with a wish to be a CA", request(attributes=asking(extension("2.5.29.19", b"\x30\x03\x01\x01\xff")))
    yield "without attributes", request(context=b"")
    yield "with attributes of another tag", request(context=E(0xA1))
    yield "with a tag above 30", request(attributes=b"\xbf\x1f\x00")

    yield "with junk at the end", request(after=b"\0")
    yield "followed by another request", request(after=request(name(part(ORG, MASTERS))))
    yield "with junk in it", request(outside=NULL)
    yield "with junk in its signed part", request(more=NULL)
    yield "with a large version", request(version=der.integer(1 << 70))
    yield "with a negative version", request(version=der.integer(-1))
    yield "with a version that is not minimal", request(version=b"\x02\x02\x00\x01")
    yield "with a length that is not minimal", request(long_form(name(part(CN, b"x"))))
    yield "with an indefinite length", request(b"\x30\x80" + E(der.SET, part(CN, b"x")) + b"\0\0")
    yield "cut off", request()[:-1]
    yield "nothing", b""


def random_request(chance: random.Random) -> bytes:
    kinds = (CN, ORG, ORG, OU, C, SERIAL, "2.5.4.12", "2.5.4.10.1")
    tags = (UTF8, NUMERIC, PRINTABLE, T61, IA5, BMP, GENERAL, 1, 2, 3, 4, 6, 5, 0x2C, 0x8C)
    values = (b"", b"a", MASTERS, b"a*b", b"a@b", "é".encode(), b"\xe9", b"\0a\0b", b"1 2", b"\x80", b"\0", b"\xff")
    alternatives = (
        *(E(DNS, b"a.b"), E(DNS, b"\xff"), E(EMAIL, b"a@b"), E(IP, b"\1\2\3\4"), E(IP, b"\1" * 5), E(0xA0, NULL)),
        *(E(URI, b"spiffe://a/b"), E(URI, b"HTTP://A/%41"), E(URI, b"urn:a"), E(2, b"\1"), E(0x88, b"\1")),
    )

    def parts() -> list[bytes]:
        return [
            part(chance.choice(kinds), chance.choice(values), chance.choice(tags)) for _ in range(chance.randrange(3))
        ]

    subject = E(der.SEQUENCE, *(E(der.SET, *parts()) for _ in range(chance.randrange(4))))
    chosen = [sans(*chance.choices(alternatives, k=chance.randrange(4))) for _ in range(chance.randrange(3))]
    made = E(der.SEQUENCE, der.integer(0), subject, public(ED), E(0xA0, *chosen))
    info = bytearray(made)
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        at = chance.randrange(len(info))
        info[at : at + chance.randrange(2)] = bytes((chance.choice((0, 1, 0x30, 0x31, 0x1F, 0x80, 0x81, 0xFF, 12)),))
    info = bytes(info)
    return E(der.SEQUENCE, info, algorithm("1.3.101.112"), der.bit_string(ED.sign(info)))


# --- Go


class Go:
    """The compiled program."""

    def __init__(self, folder: Path) -> None:
        self._binary = folder / "readings"
        source = Path(__file__).with_suffix(".go")
        environment = {**os.environ, "GO111MODULE": "off", "GOCACHE": str(folder / "cache"), "GOTOOLCHAIN": "local"}
        subprocess.run([os.environ.get("GO", "go"), "build", "-o", self._binary, source], env=environment, check=True)

    def answers(self, kind: str, documents: Sequence[bytes]) -> list[Any]:
        lines = "".join(f"{kind} {one.hex()}\n" for one in documents)
        done = subprocess.run([self._binary], input=lines, capture_output=True, text=True, check=True)
        return [json.loads(line) for line in done.stdout.split("\n") if line]


def record(go: Go) -> None:
    texts = go.answers("pem", list(TEXTS.values()))
    table = [[what, text.hex(), found] for (what, text), found in zip(TEXTS.items(), texts, strict=True)]
    _write("pem.json", table)
    made = list(requests())
    answers = go.answers("request", [document for _, document in made])
    _write("requests.json", [[what, one.hex(), found] for (what, one), found in zip(made, answers, strict=True)])


def _write(file: str, table: Sequence[object]) -> None:
    rows = ",\n".join(json.dumps(row) for row in table)
    (RECORDED / file).write_text(f"[\n{rows}\n]\n")


def fuzz(go: Go) -> None:
    for seed in itertools.count(int.from_bytes(os.urandom(4), "big")):
        chance = random.Random(seed)
        texts = [random_text(chance) for _ in range(20000)]
        for text, found in zip(texts, go.answers("pem", texts), strict=True):
            assert blocks_of(text) == found, text
        documents = [random_request(chance) for _ in range(2000)]
        for document, found in zip(documents, go.answers("request", documents), strict=True):
            assert differences(document, found) in ("", "not read"), document.hex()
        print(f"seed {seed}: {len(texts)} texts and {len(documents)} requests are read as by Go", flush=True)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        (fuzz if sys.argv[1:] == ["fuzz"] else record)(Go(Path(folder)))
