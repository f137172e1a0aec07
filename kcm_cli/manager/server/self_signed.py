"""A serving certificate that is signed by a new CA and valid for a year, for a server without one.

upstream: staging/src/k8s.io/client-go/util/cert/cert.go#GenerateSelfSignedCertKey,
apiserver/pkg/server/options/serving.go
"""

import ipaddress
import os
import re
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.component import key_pairs
from kcm_cli.component.certificates import issue, name_of
from kcm_cli.component.clock import Clock
from kcm_cli.component.files import replaced
from kcm_cli.manager.errors import RunError

HOST = "localhost"
_YEAR = timedelta(days=365)
_EARLY = timedelta(hours=1)
_MADE = re.compile(r".+-ca@[0-9]+")
"""The name of the CA of such a pair."""


class Pair(msgspec.Struct, frozen=True):
    """A certificate with its chain and its key, both in PEM."""

    cert: bytes
    key: bytes


def make_pair(bind_address: str, now: datetime) -> Pair:
    """Create a certificate for localhost and the bind address."""
    stamp = int(now.timestamp())
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer = name_of(f"{HOST}-ca@{stamp}")
    authority = issue(issuer, ca_key, issuer, ca_key, now - _EARLY, now + _YEAR)
    leaf = issue(
        name_of(f"{HOST}@{stamp}"),
        key,
        issuer,
        ca_key,
        now - _EARLY,
        now + _YEAR,
        x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
        x509.SubjectAlternativeName(_alternatives(bind_address)),
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Pair(leaf.public_bytes(pem) + authority.public_bytes(pem), secret)


class PairInMemory:
    """A pair that is kept in memory, and is made anew when it is over, as one in files."""

    def __init__(self, bind_address: str, clock: Clock) -> None:
        self._bind_address, self._clock = bind_address, clock
        self._made_at = clock.now()
        self._pair = make_pair(bind_address, self._made_at)

    def current(self) -> Pair:
        """The pair to serve."""
        now = self._clock.now()
        if not self._made_at - _EARLY <= now < self._made_at + _YEAR:
            self._made_at, self._pair = now, make_pair(self._bind_address, now)
        return self._pair


def kept_pair(directory: str, name: str, bind_address: str, now: datetime) -> tuple[Path, Path]:
    """The certificate and key files in a directory, created if they do not exist. Raises RunError.

    A pair that is over is renewed here, too: the renewal may have ended between its two files.
    """
    folder = Path(directory)
    cert_file, key_file = folder / f"{name}.crt", folder / f"{name}.key"
    has_cert, has_key = (os.path.exists(file) for file in (cert_file, key_file))  # those of Path raise for some folders
    if has_cert != has_key:
        there, missing = (cert_file, key_file) if has_cert else (key_file, cert_file)
        raise RunError(f"cert-dir: {there} is there without {missing.name}: put both there, or remove it")
    if not has_cert:
        _make(cert_file, key_file, bind_address, now)
        return cert_file, key_file
    with suppress(RunError):  # who serves it tries again, and reports that
        renew(cert_file, key_file, bind_address, now)
    return cert_file, key_file


def renew(cert_file: Path, key_file: Path, bind_address: str, now: datetime) -> None:
    """Make a pair anew that was made here, or by kube-controller-manager, and is not valid now: it has expired, or was
    made by a clock that was ahead. Raises RunError.

    upstream keeps it, also after a restart
    """
    try:
        certificate = key_pairs.chain(cert_file.read_bytes())[0]
        signer = certificate.issuer.get_attributes_for_oid(NameOID.COMMON_NAME)
    except (OSError, ValueError):  # who reads it to serve it reports that
        return
    valid = certificate.not_valid_before_utc <= now < certificate.not_valid_after_utc
    if not valid and any(_MADE.fullmatch(str(one.value)) for one in signer):
        _make(cert_file, key_file, bind_address, now)


def _make(cert_file: Path, key_file: Path, bind_address: str, now: datetime) -> None:
    """The certificate is written last: as long as it is over, the pair is made anew."""
    pair, folder = make_pair(bind_address, now), cert_file.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, content, mode in ((key_file, pair.key, 0o600), (cert_file, pair.cert, 0o644)):
            with replaced(path, mode) as file:
                file.write(content)
    except OSError as error:
        raise RunError(f"cert-dir: cannot write {folder}: {error.strerror}") from error


def _alternatives(bind_address: str) -> list[x509.GeneralName]:
    address = ipaddress.ip_address(bind_address)
    loopback = ipaddress.ip_address("127.0.0.1")
    addresses = [loopback] if address.is_unspecified or address == loopback else [loopback, address]
    return [x509.DNSName(HOST), *(x509.IPAddress(one) for one in addresses)]
