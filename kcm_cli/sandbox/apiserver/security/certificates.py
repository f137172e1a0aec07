"""The keys of a cluster: a CA (for the server, clients and signers), the certificates of the server and the
administrator, and the key that signs service account tokens.

The certificates have EC P-256 keys, since generating RSA keys would take longer than the server's start. Tokens use
RS256, as in most clusters, since every verifier supports it. With a directory the files are written with mode 0600 and
used again at the next start. A certificate that expires soon or lacks an address is renewed, and so is an expiring CA.
"""

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from kcm_cli.api.well_known import MASTERS
from kcm_cli.component import key_pairs
from kcm_cli.component.certificates import issue, name_of
from kcm_cli.component.files import replaced

SERVER_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK = ("127.0.0.1", "::1")
ADMIN_NAME, ADMIN_GROUPS = "kubernetes-admin", (MASTERS,)
_EXPONENT, _BITS = 65537, 2048
_CA_DAYS, _LEAF_DAYS, _RENEW_DAYS = 3650, 365, 30
_BACKDATE = timedelta(minutes=5)
_LONGEST_NAME = 64
"""The maximum length of a common name."""


class KeyPair(msgspec.Struct, frozen=True):
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes


class Keys(msgspec.Struct, frozen=True):
    """Keys from elsewhere: the serving certificate, and the key (PEM) that signs service account tokens."""

    serving: KeyPair | None = None
    service_account: bytes = b""


class Certificates:
    """See the module. Use ``load``."""

    def __init__(self, ca: KeyPair, serving: KeyPair, admin: KeyPair, service_account: bytes, now: datetime) -> None:
        self.ca = ca
        self.serving = serving
        self.admin = admin
        self.service_account_key = service_account
        self._issuer = _Issuer(ca, now)

    @classmethod
    def load(
        cls,
        directory: Path | None,
        now: datetime,
        addresses: Sequence[str] = LOOPBACK,
        keys: Keys | None = None,
    ) -> "Certificates":
        """Read the files in the directory, and create and write missing ones. Without a directory all is in memory.

        addresses: names and IPs of the server in addition to SERVER_NAMES. keys: used instead of new ones. Raises
        OSError, ValueError.
        """
        ca = _read(directory, "ca")
        if ca is None or not _lasts(ca, now):
            ca = _write(directory, "ca", _new_ca(now))
        issuer = _Issuer(ca, now)
        names = [*SERVER_NAMES, *(a for a in addresses if a not in SERVER_NAMES)]
        keys = keys or Keys()
        serving = keys.serving
        if serving is None:
            serving = _read(directory, "apiserver")
            if serving is None or not issuer.has_issued(serving) or not set(names) <= _names_of(serving):
                serving = _write(directory, "apiserver", issuer.server("kube-apiserver", names))
        admin = _read(directory, "admin")
        if admin is None or not issuer.has_issued(admin):
            admin = _write(directory, "admin", issuer.client(ADMIN_NAME, ADMIN_GROUPS))
        return cls(ca, serving, admin, keys.service_account or _service_account_key(directory), now)

    def client(self, name: str, groups: Sequence[str] = ()) -> KeyPair:
        """A new client certificate for a user."""
        return self._issuer.client(name, groups)

    def server(self, *names: str) -> KeyPair:
        """A new certificate for a server with these names and IPs. The first one is the common name."""
        return self._issuer.server(names[0], names)

    def write_server(self, directory: Path, *names: str) -> None:
        """Write ``server(*names)`` as tls.crt and tls.key, and the CA as ca.crt, as in a TLS Secret."""
        _write(directory, "tls", self.server(*names))
        _write_file(directory / "ca.crt", self.ca.certificate)

    @staticmethod
    def write_pair(directory: Path, stem: str, pair: KeyPair) -> None:
        """Write STEM.crt and STEM.key to a directory."""
        _write(directory, stem, pair)

    def write(self, directory: Path) -> None:
        """Write all files to a directory, which is created with mode 0700."""
        for stem, pair in (("ca", self.ca), ("apiserver", self.serving), ("admin", self.admin)):
            _write(directory, stem, pair)
        _write_file(directory / "sa.key", self.service_account_key)


class _Issuer:
    """Issues certificates of a CA."""

    def __init__(self, ca: KeyPair, now: datetime) -> None:
        """Raises ValueError."""
        key = key_pairs.pair_key(ca.key)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError("the key of the CA is not an EC key")
        self._key = key
        self._certificate = key_pairs.chain(ca.certificate)[0]
        self._now = now

    def has_issued(self, pair: KeyPair) -> bool:
        """Whether a certificate was issued by this CA and does not expire soon."""
        certificate = key_pairs.chain(pair.certificate)[0]
        if certificate.issuer != self._certificate.subject or not _lasts(pair, self._now):
            return False
        ours = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        theirs = certificate.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
        key = key_pairs.pair_key(pair.key)
        return theirs.key_identifier == ours.key_identifier and key.public_key() == certificate.public_key()

    def server(self, name: str, names: Sequence[str]) -> KeyPair:
        alternative = x509.SubjectAlternativeName([_general_name(each) for each in names])
        return self._leaf(name_of(name[:_LONGEST_NAME]), ExtendedKeyUsageOID.SERVER_AUTH, alternative)

    def client(self, name: str, groups: Sequence[str]) -> KeyPair:
        return self._leaf(name_of(name, *groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _leaf(self, subject: x509.Name, usage: x509.ObjectIdentifier, *extensions: x509.ExtensionType) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        issuer = self._certificate
        end = min(self._now + timedelta(days=_LEAF_DAYS), issuer.not_valid_after_utc)
        usages = x509.ExtendedKeyUsage([usage])
        start = self._now - _BACKDATE
        return _pair(issue(subject, key, issuer.subject, self._key, start, end, usages, *extensions), key)


def _new_ca(now: datetime) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = name_of("kcm-sandbox-ca")
    return _pair(issue(name, key, name, key, now - _BACKDATE, now + timedelta(days=_CA_DAYS)), key)


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _names_of(pair: KeyPair) -> set[str]:
    certificate = key_pairs.chain(pair.certificate)[0]
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return {str(each.value) for each in names}


def _lasts(pair: KeyPair, now: datetime) -> bool:
    certificate = key_pairs.chain(pair.certificate)[0]
    return certificate.not_valid_after_utc > now + timedelta(days=_RENEW_DAYS)


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    return KeyPair(certificate.public_bytes(serialization.Encoding.PEM), _pem(key))


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _service_account_key(directory: Path | None) -> bytes:
    path = directory / "sa.key" if directory else None
    if path is not None and path.exists():
        return path.read_bytes()
    key = _pem(rsa.generate_private_key(_EXPONENT, _BITS))
    if path is not None:
        _write_file(path, key)
    return key


def _read(directory: Path | None, stem: str) -> KeyPair | None:
    if directory is None:
        return None
    try:
        return KeyPair((directory / f"{stem}.crt").read_bytes(), (directory / f"{stem}.key").read_bytes())
    except FileNotFoundError:
        return None


def _write(directory: Path | None, stem: str, pair: KeyPair) -> KeyPair:
    if directory is not None:
        _write_file(directory / f"{stem}.key", pair.key)
        _write_file(directory / f"{stem}.crt", pair.certificate)
    return pair


def _write_file(path: Path, data: bytes) -> None:
    """Write a file atomically, at no time readable by other users."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replaced(path) as file:
        file.write(data)
