"""A signing CA in two files, which are reloaded when they change, and the certificates that it signs.

The request decides the subject, the names and the usages. A certificate is valid from a little before now, and expires
before its issuer does.

upstream: pkg/controller/certificates/authority/policies.go, authority.go
"""

import logging
import secrets
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from kcm_cli.component import key_pairs
from kcm_cli.machinery import der, pem
from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.pkcs10 import CertificateRequest
from kcm_cli.runtime.loads import Loads

BACKDATE = timedelta(minutes=5)
QUEUE = "DynamicCABundle-csr-controller"
"""The name under which loads of the files are counted."""
SHORT = timedelta(hours=8)
"""A certificate that lasts less than this is not cut by the time by which it is backdated."""

_USAGES = {
    "signing": 0,
    "digital signature": 0,
    "content commitment": 1,
    "key encipherment": 2,
    "data encipherment": 3,
    "key agreement": 4,
    "cert sign": 5,
    "crl sign": 6,
    "encipher only": 7,
    "decipher only": 8,
}
"""The bits of the key usage."""
_EXTENDED = {
    "any": "2.5.29.37.0",
    "server auth": "1.3.6.1.5.5.7.3.1",
    "client auth": "1.3.6.1.5.5.7.3.2",
    "code signing": "1.3.6.1.5.5.7.3.3",
    "email protection": "1.3.6.1.5.5.7.3.4",
    "s/mime": "1.3.6.1.5.5.7.3.4",
    "ipsec end system": "1.3.6.1.5.5.7.3.5",
    "ipsec tunnel": "1.3.6.1.5.5.7.3.6",
    "ipsec user": "1.3.6.1.5.5.7.3.7",
    "timestamping": "1.3.6.1.5.5.7.3.8",
    "ocsp signing": "1.3.6.1.5.5.7.3.9",
    "microsoft sgc": "1.3.6.1.4.1.311.10.3.3",
    "netscape sgc": "2.16.840.1.113730.4.1",
}
_KEY_USAGE, _EXTENDED_USAGE, _CONSTRAINTS = "2.5.29.15", "2.5.29.37", "2.5.29.19"
_AUTHORITY_KEY, _ALTERNATIVE_NAME = "2.5.29.35", "2.5.29.17"
_EMAIL, _DNS, _URI, _IP = (der.CONTEXT | kind for kind in (1, 2, 6, 7))
_IPV4_MAPPED = bytes(10) + b"\xff\xff"
_NULL = der.element(der.NULL)
_IPV4_SIZE = 4
_UTC_YEARS = range(1950, 2050)
_RSA_ALGORITHM = der.element(der.SEQUENCE, der.oid("1.2.840.113549.1.1.11"), _NULL)
ED25519_ALGORITHM = der.element(der.SEQUENCE, der.oid("1.3.101.112"))


class Issuer(msgspec.Struct, frozen=True):
    """A CA. name: its subject as in its certificate, DER. key_id: None without one."""

    name: bytes
    key_id: bytes | None
    ends: datetime

    @classmethod
    def of(cls, certificate: x509.Certificate) -> "Issuer":
        name = der.subject(certificate.public_bytes(serialization.Encoding.DER))
        return cls(name, _key_id(certificate), certificate.not_valid_after_utc)


def certificate_for(
    request: CertificateRequest, issuer: Issuer, usages: Collection[str], lifetime: timedelta, now: datetime
) -> Callable[[bytes, int], bytes]:
    """The certificate to sign, DER: a function of the signature's algorithm and the serial number.

    It is byte for byte what Go builds. Raises FormatError if the issuer cannot sign it.
    """
    extensions = _extensions(request, issuer, usages)
    begin, end = _period(lifetime, now, issuer.ends)

    def signed_part(algorithm: bytes, serial: int) -> bytes:
        return der.element(
            der.SEQUENCE,
            der.element(der.CONTEXT | der.CONSTRUCTED, der.integer(2)),
            der.integer(serial),
            algorithm,
            issuer.name,
            der.element(der.SEQUENCE, _time(begin), _time(end)),
            request.subject,
            request.public_key,
            der.element(der.CONTEXT | der.CONSTRUCTED | 3, der.element(der.SEQUENCE, *extensions)),
        )

    return signed_part


def _time(moment: datetime) -> bytes:
    if moment.year in _UTC_YEARS:
        return der.element(der.UTC_TIME, moment.strftime("%y%m%d%H%M%SZ").encode())
    return der.element(der.GENERALIZED_TIME, moment.strftime("%Y%m%d%H%M%SZ").encode())


def _period(lifetime: timedelta, now: datetime, issuer_ends: datetime) -> tuple[datetime, datetime]:
    if now >= issuer_ends:
        raise FormatError(f"the signing certificate has expired: {issuer_ends.isoformat()}")
    end = now + lifetime if lifetime < SHORT else now + lifetime - BACKDATE
    return now - BACKDATE, min(end, issuer_ends)


def _extensions(request: CertificateRequest, issuer: Issuer, usages: Collection[str]) -> list[bytes]:
    unknown = [usage for usage in usages if usage not in _USAGES and usage not in _EXTENDED]
    if unknown:
        raise FormatError(f"unrecognized usage values: {', '.join(unknown)}")
    found: list[bytes] = []
    if bits := {_USAGES[usage] for usage in usages if usage in _USAGES}:
        found.append(_extension(_KEY_USAGE, _bits(bits), critical=True))
    if extended := list(dict.fromkeys(oid for usage, oid in _EXTENDED.items() if usage in usages)):
        found.append(_extension(_EXTENDED_USAGE, der.element(der.SEQUENCE, *map(der.oid, extended))))
    found.append(_extension(_CONSTRAINTS, der.element(der.SEQUENCE), critical=True))
    if issuer.key_id and issuer.name != request.subject:
        found.append(_extension(_AUTHORITY_KEY, der.element(der.SEQUENCE, der.element(der.CONTEXT, issuer.key_id))))
    if names := _alternative_names(request):
        nameless = request.subject == der.element(der.SEQUENCE)
        found.append(_extension(_ALTERNATIVE_NAME, der.element(der.SEQUENCE, *names), critical=nameless))
    return found


def _extension(oid: str, content: bytes, *, critical: bool = False) -> bytes:
    flag = der.element(der.BOOLEAN, b"\xff") if critical else b""
    return der.element(der.SEQUENCE, der.oid(oid), flag, der.element(der.OCTET_STRING, content))


def _bits(bits: Collection[int]) -> bytes:
    octets, used = divmod(max(bits), 8)
    size = 8 * (octets + 1)
    return der.bit_string(sum(1 << size - 1 - bit for bit in bits).to_bytes(octets + 1, "big"), 7 - used)


def _alternative_names(request: CertificateRequest) -> list[bytes]:
    ips = (ip.removeprefix(_IPV4_MAPPED) if len(ip) > _IPV4_SIZE else ip for ip in request.ips)
    return [
        *(der.element(_DNS, name.encode()) for name in request.dns_names),
        *(der.element(_EMAIL, email.encode()) for email in request.emails),
        *(der.element(_IP, ip) for ip in ips),
        *(der.element(_URI, uri.encode()) for uri in request.uris),
    ]


def _key_id(issuer: x509.Certificate) -> bytes | None:
    try:
        return issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


log = logging.getLogger(__name__)

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_SHA256 = hashes.SHA256(), "1.2.840.10045.4.3.2"
_CURVES: Mapping[str, tuple[hashes.SHA384 | hashes.SHA512, str]] = {
    "secp384r1": (hashes.SHA384(), "1.2.840.10045.4.3.3"),
    "secp521r1": (hashes.SHA512(), "1.2.840.10045.4.3.4"),
}
_SERIAL_BITS = 128


class Authority:
    """Signs with the CA in its files. upstream: caProvider, DynamicCertKeyPairContent.

    Raises FormatError, OSError if the files have no valid CA at the start.
    """

    def __init__(self, certificate_file: str, key_file: str, loads: Loads) -> None:
        self._files = Path(certificate_file), Path(key_file)
        self._loads = loads
        since = loads.now()
        self._content = self._read()
        self._certificates, self._key = _loaded(*self._content)
        self._current()
        loads.loaded(QUEUE, since)

    def sign(self, request: CertificateRequest, usages: Collection[str], lifetime: timedelta, now: datetime) -> bytes:
        """The certificate as PEM. Raises FormatError."""
        self._reload()
        certificate, key = self._current()
        to_sign = certificate_for(request, Issuer.of(certificate), usages, lifetime, now)
        algorithm, sign = _signing(key)
        signed = to_sign(algorithm, secrets.randbits(_SERIAL_BITS))
        return pem.encode(pem.CERTIFICATE, der.element(der.SEQUENCE, signed, algorithm, der.bit_string(sign(signed))))

    def _reload(self) -> None:
        """Read the files again. Those without a certificate and its key are not used."""
        since = self._loads.now()
        try:
            content = self._read()
            if content != self._content:
                self._certificates, self._key = _loaded(*content)
                self._content = content
                self._loads.loaded(QUEUE, since)
        except (OSError, FormatError) as error:
            log.error("Could not reload the signing CA, keeping the last", extra={"fields": {"err": str(error)}})

    def _current(self) -> tuple[x509.Certificate, Key]:
        """Raises FormatError if there are several certificates."""
        if len(self._certificates) != 1:
            raise FormatError(f"expected 1 certificate, found {len(self._certificates)}")
        return self._certificates[0], self._key

    def _read(self) -> tuple[bytes, bytes]:
        certificate, key = self._files
        return certificate.read_bytes(), key.read_bytes()


def _loaded(certificate: bytes, key: bytes) -> tuple[list[x509.Certificate], Key]:
    """The certificates of a file, and the key of the first one. Raises FormatError."""
    certificates, private = key_pairs.certificates(certificate), key_pairs.private_key(key)
    if not isinstance(private, Key):
        raise FormatError("the key is of an unsupported kind: use RSA, ECDSA or Ed25519")
    if private.public_key() != certificates[0].public_key():
        raise FormatError("the key is not the certificate's")
    return certificates, private


def _signing(key: Key) -> tuple[bytes, Callable[[bytes], bytes]]:
    """The AlgorithmIdentifier for a key, and the function that signs."""
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return ED25519_ALGORITHM, key.sign
    if isinstance(key, rsa.RSAPrivateKey):
        return _RSA_ALGORITHM, lambda data: key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    digest, name = _CURVES.get(key.curve.name, _SHA256)
    return der.element(der.SEQUENCE, der.oid(name)), lambda data: key.sign(data, ec.ECDSA(digest))
