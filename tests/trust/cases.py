"""Certificates that servers may show, good and odd, and the CA bundles that a kubeconfig may name.

The same cases are put to the Go binary (``record.py``) and to kcm (``tests/integration/rest/test_trust.py``).
"""

import datetime
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)
Key = Any


@dataclass(frozen=True)
class Signed:
    """A certificate and its key."""

    certificate: x509.Certificate
    key: Key

    @property
    def pem(self) -> bytes:
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def secret(self) -> bytes:
        return self.key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )


@dataclass(frozen=True)
class Case:
    """What the server sends (``chain``, with ``secret``), and what the client has. An empty name: 127.0.0.1."""

    chain: bytes
    secret: bytes
    bundle: bytes
    server_name: str = ""


@dataclass(frozen=True, kw_only=True)
class Form:
    """What is in a certificate."""

    name: str
    sans: tuple[str, ...] = ()
    ca: bool | None = None
    path_length: int | None = None
    starts: datetime.datetime = NOW - DAY
    ends: datetime.datetime = NOW + DAY
    usages: tuple[ObjectIdentifier, ...] = ()
    key_usage: x509.KeyUsage | None = None
    more: tuple[tuple[x509.ExtensionType, bool], ...] = ()


LEAF = Form(name="server", sans=("127.0.0.1",), ca=False, usages=(ExtendedKeyUsageOID.SERVER_AUTH,))
ROOT = Form(name="root", ca=True)
BETWEEN = Form(name="intermediate", ca=True)


def sign(form: Form, issuer: Signed | None = None, key: Key = None) -> Signed:
    """Without an issuer it signs itself."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    builder = (
        x509.CertificateBuilder()
        .subject_name(_name(form.name))
        .issuer_name(issuer.certificate.subject if issuer else _name(form.name))
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(form.starts)
        .not_valid_after(form.ends)
    )
    if form.ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(form.ca, form.path_length), critical=True)
    if form.sans:
        builder = builder.add_extension(x509.SubjectAlternativeName([_san(san) for san in form.sans]), critical=False)
    if form.usages:
        builder = builder.add_extension(x509.ExtendedKeyUsage(form.usages), critical=False)
    if form.key_usage:
        builder = builder.add_extension(form.key_usage, critical=True)
    for extension, critical in form.more:
        builder = builder.add_extension(extension, critical=critical)
    signer = issuer.key if issuer else key
    chosen = None if isinstance(signer, ed25519.Ed25519PrivateKey) else hashes.SHA256()
    return Signed(builder.sign(signer, chosen), key)


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _san(text: str) -> x509.GeneralName:
    if text.startswith("dns:"):
        return x509.DNSName(text[4:])
    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _usage(**given: bool) -> x509.KeyUsage:
    names = (
        "digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
        "key_cert_sign", "crl_sign", "encipher_only", "decipher_only",
    )  # fmt: skip
    return x509.KeyUsage(**{name: given.get(name, False) for name in names})


def _simple(leaf: Form, root: Form = ROOT, server_name: str = "", key: Key = None) -> Case:
    ca = sign(root)
    shown = sign(leaf, ca, key)
    return Case(shown.pem, shown.secret, ca.pem, server_name)


def _three(
    leaf: Form = LEAF, between: Form = BETWEEN, root: Form = ROOT, *, send: bool = True, trust: str = "root"
) -> Case:
    ca = sign(root)
    middle = sign(between, ca)
    shown = sign(leaf, middle)
    bundle = {"root": ca.pem, "intermediate": middle.pem, "leaf": shown.pem}[trust]
    return Case(shown.pem + (middle.pem if send else b""), shown.secret, bundle)


def _named(*sans: str, asks: str) -> Case:
    return _simple(replace(LEAF, sans=sans), server_name=asks)


def _bundle(change: Callable[[bytes], bytes]) -> Case:
    case = _simple(LEAF)
    return replace(case, bundle=change(case.bundle))


def _self_signed(*, ca: bool | None) -> Case:
    shown = sign(replace(LEAF, ca=ca))
    return Case(shown.pem, shown.secret, shown.pem)


def _other_key() -> Case:
    case = _simple(LEAF)
    return replace(case, bundle=sign(ROOT).pem)


def _same_names(make: Callable[[str], Key], *, chosen: int, count: int = 3, between: bool = False) -> Case:
    """CAs of one name, as while one is replaced, of which one has signed. make: a key."""
    cas = [sign(ROOT, key=make("ca")) for _ in range(count)]
    ca = sign(BETWEEN, cas[chosen]) if between else cas[chosen]
    shown = sign(LEAF, ca, make("leaf"))
    return Case(shown.pem + (ca.pem if between else b""), shown.secret, b"".join(one.pem for one in cas))


def _renewed(*, expired: bool = False) -> Case:
    """A CA that was made anew for its key, with another key identifier than that by which the leaf names it."""
    ca = sign(_identified(ROOT, b"old"))
    leaf = replace(LEAF, more=((x509.AuthorityKeyIdentifier(b"old", None, None), False),))
    shown = sign(leaf, ca)
    new = sign(replace(_identified(ROOT, b"new"), ends=EXPIRED if expired else ROOT.ends), key=ca.key)
    return Case(shown.pem, shown.secret, new.pem)


def _renewed_beside_expired(*, first: bool) -> Case:
    """The same, with the old one, which has expired, in the bundle. first: of the two."""
    old = sign(replace(_identified(ROOT, b"old"), ends=EXPIRED))
    new = sign(_identified(ROOT, b"new"), key=old.key)
    shown = sign(replace(LEAF, more=((x509.AuthorityKeyIdentifier(b"old", None, None), False),)), old)
    return Case(shown.pem, shown.secret, old.pem + new.pem if first else new.pem + old.pem)


def _identified(form: Form, key_id: bytes) -> Form:
    return replace(form, more=((x509.SubjectKeyIdentifier(key_id), False),))


def _replaced_after_expiry() -> Case:
    """Three CAs of one name: one has expired, one has signed, one is the next."""
    cas = [sign(replace(ROOT, ends=EXPIRED)), sign(ROOT), sign(ROOT)]
    shown = sign(LEAF, cas[1])
    return Case(shown.pem, shown.secret, b"".join(one.pem for one in cas))


def _rsa(bits: int) -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, bits)


def _curve(whose: str) -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP256R1())


def _weak_root() -> Case:
    ca = sign(ROOT, key=_rsa(1024))
    shown = sign(LEAF, ca)
    return Case(shown.pem, shown.secret, ca.pem)


def _unknown_extension(*, critical: bool) -> Form:
    extension = x509.UnrecognizedExtension(ObjectIdentifier("1.3.6.1.4.1.57683.99"), b"\x05\x00")
    return replace(LEAF, more=((extension, critical),))


def _constrained(domain: str) -> Form:
    return replace(ROOT, more=((x509.NameConstraints([x509.DNSName(domain)], None), True),))


def _netscape(form: Form, kind: int = 0x80) -> Form:
    """With the old type of a certificate, by default that of a client."""
    extension = x509.UnrecognizedExtension(ObjectIdentifier("2.16.840.1.113730.1.1"), bytes((3, 2, 0, kind)))
    return replace(form, more=(*form.more, (extension, False)))


def _two_of_a_name(leaf: Form) -> Case:
    """The second of two CAs of one name has signed."""
    cas = [sign(ROOT), sign(ROOT)]
    shown = sign(leaf, cas[1])
    return Case(shown.pem, shown.secret, b"".join(one.pem for one in cas))


def _broken_certificate() -> bytes:
    return b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


EXPIRED = NOW - datetime.timedelta(hours=1)
CLIENT = (ExtendedKeyUsageOID.CLIENT_AUTH,)
ANY = (ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,)

CASES: dict[str, Callable[[], Case]] = {
    "root signs leaf": lambda: _simple(LEAF),
    "intermediate alone is trusted, sent along": lambda: _three(trust="intermediate"),
    "intermediate alone is trusted, not sent": lambda: _three(trust="intermediate", send=False),
    "root is trusted, intermediate sent": _three,
    "root is trusted, intermediate missing": lambda: _three(send=False),
    "leaf of an intermediate is itself trusted": lambda: _three(trust="leaf", send=False),
    "self-signed leaf is trusted": lambda: _self_signed(ca=False),
    "self-signed leaf without basic constraints": lambda: _self_signed(ca=None),
    "self-signed CA as leaf": lambda: _self_signed(ca=True),
    "leaf that is a CA": lambda: _simple(replace(LEAF, ca=True)),
    "CA of the same name with another key": _other_key,
    "first of three CAs of one name": lambda: _same_names(_curve, chosen=0),
    "second of three CAs of one name": lambda: _same_names(_curve, chosen=1),
    "third of three CAs of one name": lambda: _same_names(_curve, chosen=2),
    "first of two RSA CAs of one name": lambda: _same_names(lambda whose: _rsa(2048), chosen=0, count=2),
    "second of two RSA CAs of one name": lambda: _same_names(lambda whose: _rsa(2048), chosen=1, count=2),
    "intermediate of one of two CAs of one name": lambda: _same_names(_curve, chosen=0, count=2, between=True),
    "intermediate of the other of two CAs of one name": lambda: _same_names(_curve, chosen=1, count=2, between=True),
    "expired, present and next CA of one name": _replaced_after_expiry,
    "CA with another key identifier than the leaf says": _renewed,
    "expired CA with another key identifier": lambda: _renewed(expired=True),
    "CA with another key identifier after an expired one": lambda: _renewed_beside_expired(first=True),
    "CA with another key identifier before an expired one": lambda: _renewed_beside_expired(first=False),
    "no SAN, common name fits": lambda: _simple(replace(LEAF, name="api.test", sans=()), server_name="api.test"),
    "no SAN, common name is the address": lambda: _simple(replace(LEAF, name="127.0.0.1", sans=())),
    "common name fits, SAN does not": lambda: _simple(replace(LEAF, name="127.0.0.1", sans=("10.0.0.1",))),
    "another address": lambda: _named("127.0.0.2", asks=""),
    "address as DNS name": lambda: _named("dns:127.0.0.1", asks=""),
    "another name": lambda: _named("other.test", asks="api.test"),
    "name in capitals asked": lambda: _named("api.test", asks="API.test"),
    "name in capitals shown": lambda: _named("API.TEST", asks="api.test"),
    "wildcard": lambda: _named("*.test.example", asks="api.test.example"),
    "wildcard is one label": lambda: _named("*.example", asks="api.test.example"),
    "wildcard in a label": lambda: _named("a*.test.example", asks="api.test.example"),
    "wildcard of everything": lambda: _named("*", asks="api"),
    "name with underscore": lambda: _named("api_one.test", asks="api_one.test"),
    "expired leaf": lambda: _simple(replace(LEAF, ends=EXPIRED)),
    "leaf not yet valid": lambda: _simple(replace(LEAF, starts=NOW + DAY / 2)),
    "expired root": lambda: _simple(LEAF, replace(ROOT, ends=EXPIRED)),
    "expired intermediate": lambda: _three(between=replace(BETWEEN, ends=EXPIRED)),
    "leaf for clients only": lambda: _simple(replace(LEAF, usages=CLIENT)),
    "leaf without usages": lambda: _simple(replace(LEAF, usages=())),
    "leaf for any usage": lambda: _simple(replace(LEAF, usages=ANY)),
    "intermediate for clients only": lambda: _three(between=replace(BETWEEN, usages=CLIENT)),
    "root for clients only": lambda: _simple(LEAF, replace(ROOT, usages=CLIENT)),
    "intermediate that is no CA": lambda: _three(between=replace(BETWEEN, ca=False)),
    "intermediate without basic constraints": lambda: _three(between=replace(BETWEEN, ca=None)),
    "root that is no CA": lambda: _simple(LEAF, replace(ROOT, ca=False)),
    "root without basic constraints": lambda: _simple(LEAF, replace(ROOT, ca=None)),
    "path longer than the root allows": lambda: _three(root=replace(ROOT, path_length=0)),
    "root that may not sign": lambda: _simple(LEAF, replace(ROOT, key_usage=_usage(digital_signature=True))),
    "leaf whose key may only agree": lambda: _simple(replace(LEAF, key_usage=_usage(key_agreement=True))),
    "name outside of the root's constraints": lambda: _simple(
        replace(LEAF, sans=("api.test",)), _constrained("other"), "api.test"
    ),
    "name within the root's constraints": lambda: _simple(
        replace(LEAF, sans=("api.test",)), _constrained("test"), "api.test"
    ),
    "leaf whose key may only sign certificates": lambda: _simple(replace(LEAF, key_usage=_usage(key_cert_sign=True))),
    "Netscape's client": lambda: _simple(_netscape(LEAF)),
    "Netscape's client, and by usage": lambda: _simple(_netscape(replace(LEAF, usages=CLIENT))),
    "Netscape's client without usages": lambda: _simple(_netscape(replace(LEAF, usages=()))),
    "Netscape's client of an intermediate": lambda: _three(_netscape(LEAF)),
    "Netscape's client of an intermediate for clients": lambda: _three(
        _netscape(LEAF), replace(BETWEEN, usages=CLIENT)
    ),
    "Netscape's client, intermediate missing": lambda: _three(_netscape(LEAF), send=False),
    "Netscape's client of one of two CAs of one name": lambda: _two_of_a_name(_netscape(LEAF)),
    "Netscape's client by another key": lambda: replace(_simple(_netscape(LEAF)), bundle=sign(ROOT).pem),
    "Netscape's client by an unknown CA": lambda: replace(
        _simple(_netscape(LEAF)), bundle=sign(replace(ROOT, name="other")).pem
    ),
    "Netscape's client, expired": lambda: _simple(_netscape(replace(LEAF, ends=EXPIRED))),
    "Netscape's client, not yet valid": lambda: _simple(_netscape(replace(LEAF, starts=NOW + DAY / 2))),
    "Netscape's client of an expired root": lambda: _simple(_netscape(LEAF), replace(ROOT, ends=EXPIRED)),
    "Netscape's client of no CA": lambda: _three(_netscape(LEAF), replace(BETWEEN, ca=False)),
    "Netscape's client at another address": lambda: _simple(_netscape(replace(LEAF, sans=("127.0.0.2",)))),
    "Netscape's client, address as DNS name": lambda: _simple(_netscape(replace(LEAF, sans=("dns:127.0.0.1",)))),
    "Netscape's client, only a common name": lambda: _simple(_netscape(replace(LEAF, name="127.0.0.1", sans=()))),
    "Netscape's client of the name": lambda: _simple(
        _netscape(replace(LEAF, sans=("b.test", "API.test"))), server_name="api.TEST"
    ),
    "Netscape's client of another name": lambda: _simple(
        _netscape(replace(LEAF, sans=("api.test.example",))), server_name="api.test"
    ),
    "Netscape's client, wildcard": lambda: _simple(
        _netscape(replace(LEAF, sans=("*.test.example",))), server_name="api.test.example"
    ),
    "Netscape's client, wildcard is one label": lambda: _simple(
        _netscape(replace(LEAF, sans=("*.example",))), server_name="api.test.example"
    ),
    "Netscape's client, wildcard in a label": lambda: _simple(
        _netscape(replace(LEAF, sans=("a*.test.example",))), server_name="api.test.example"
    ),
    "Netscape's client, unknown critical extension": lambda: _simple(_netscape(_unknown_extension(critical=True))),
    "Netscape's client outside of the root's constraints": lambda: _simple(
        _netscape(replace(LEAF, sans=("api.test",))), _constrained("other"), "api.test"
    ),
    "Netscape's client that is itself trusted": lambda: _three(_netscape(LEAF), trust="leaf", send=False),
    "Netscape's client, RSA": lambda: _simple(_netscape(LEAF), key=_rsa(2048)),
    "Netscape's client, RSA 1024": lambda: _simple(_netscape(LEAF), key=_rsa(1024)),
    "CA of Netscape's clients": lambda: _simple(LEAF, _netscape(ROOT, 0x80)),
    "unknown critical extension": lambda: _simple(_unknown_extension(critical=True)),
    "unknown extension": lambda: _simple(_unknown_extension(critical=False)),
    "RSA 2048": lambda: _simple(LEAF, key=_rsa(2048)),
    "RSA 1024": lambda: _simple(LEAF, key=_rsa(1024)),
    "root of RSA 1024": _weak_root,
    "Ed25519": lambda: _simple(LEAF, key=ed25519.Ed25519PrivateKey.generate()),
    "P-521": lambda: _simple(LEAF, key=ec.generate_private_key(ec.SECP521R1())),
    "bundle with a comment": lambda: _bundle(lambda pem: b"# my CA\n" + pem),
    "bundle with a comment that is not ASCII": lambda: _bundle(lambda pem: "# Schlüssel von Zoë\n".encode() + pem),
    "bundle with a comment in Latin-1": lambda: _bundle(lambda pem: "# Zoë\n".encode("latin-1") + pem),
    "bundle with a key": lambda: _bundle(lambda pem: sign(ROOT).secret + pem),
    "bundle with Windows line ends": lambda: _bundle(lambda pem: pem.replace(b"\n", b"\r\n")),
    "bundle without last line end": lambda: _bundle(lambda pem: pem.rstrip()),
    "bundle with a broken certificate first": lambda: _bundle(lambda pem: _broken_certificate() + pem),
    "bundle with a broken certificate last": lambda: _bundle(lambda pem: pem + _broken_certificate()),
    "bundle of one broken certificate": lambda: _bundle(lambda pem: _broken_certificate()),
    "bundle of words": lambda: _bundle(lambda pem: b"no certificate\n"),
    "bundle twice the same": lambda: _bundle(lambda pem: pem + pem),
    "bundle with text before in the line": lambda: _bundle(lambda pem: b"ca: " + pem),
    "bundle with PEM headers": lambda: _bundle(
        lambda pem: pem.replace(b"CERTIFICATE-----\n", b"CERTIFICATE-----\nA: b\n\n", 1)
    ),
    "bundle of a trusted certificate": lambda: _bundle(lambda pem: pem.replace(b"CERTIFICATE", b"TRUSTED CERTIFICATE")),
}
