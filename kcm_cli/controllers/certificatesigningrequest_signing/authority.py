"""A signing CA in two files, which are reloaded when they change, and the certificates that it signs.

The request decides the subject, the names and the usages. A certificate is valid from a little before now, and expires
before its issuer does.

upstream: pkg/controller/certificates/authority/policies.go, authority.go
"""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kcm_cli.machinery.errors import FormatError
from kcm_cli.planning.certificate_requests import names_of
from kcm_cli.runtime.loads import Loads

BACKDATE = timedelta(minutes=5)
QUEUE = "DynamicCABundle-csr-controller"
"""The name under which loads of the files are counted."""
SHORT = timedelta(hours=8)
"""A certificate that lasts less than this is not cut by the time by which it is backdated."""

_SUBJECT = (
    NameOID.COUNTRY_NAME,
    NameOID.STATE_OR_PROVINCE_NAME,
    NameOID.LOCALITY_NAME,
    NameOID.STREET_ADDRESS,
    NameOID.POSTAL_CODE,
    NameOID.ORGANIZATION_NAME,
    NameOID.ORGANIZATIONAL_UNIT_NAME,
    NameOID.COMMON_NAME,
    NameOID.SERIAL_NUMBER,
)
_SINGLE = (NameOID.COMMON_NAME, NameOID.SERIAL_NUMBER)
_NAMES = (x509.DNSName, x509.RFC822Name, x509.IPAddress, x509.UniformResourceIdentifier)
_USAGES = {
    "signing": "digital_signature",
    "digital signature": "digital_signature",
    "content commitment": "content_commitment",
    "key encipherment": "key_encipherment",
    "data encipherment": "data_encipherment",
    "key agreement": "key_agreement",
    "cert sign": "key_cert_sign",
    "crl sign": "crl_sign",
    "encipher only": "encipher_only",
    "decipher only": "decipher_only",
}
_EXTENDED = {
    "any": ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE,
    "server auth": ExtendedKeyUsageOID.SERVER_AUTH,
    "client auth": ExtendedKeyUsageOID.CLIENT_AUTH,
    "code signing": ExtendedKeyUsageOID.CODE_SIGNING,
    "email protection": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "s/mime": ExtendedKeyUsageOID.EMAIL_PROTECTION,
    "ipsec end system": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.5"),
    "ipsec tunnel": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.6"),
    "ipsec user": x509.ObjectIdentifier("1.3.6.1.5.5.7.3.7"),
    "timestamping": ExtendedKeyUsageOID.TIME_STAMPING,
    "ocsp signing": ExtendedKeyUsageOID.OCSP_SIGNING,
    "microsoft sgc": x509.ObjectIdentifier("1.3.6.1.4.1.311.10.3.3"),
    "netscape sgc": x509.ObjectIdentifier("2.16.840.1.113730.4.1"),
}


def certificate_for(
    request: x509.CertificateSigningRequest,
    issuer: x509.Certificate,
    usages: Collection[str],
    lifetime: timedelta,
    now: datetime,
) -> x509.CertificateBuilder:
    """The certificate to sign. Raises FormatError if the issuer cannot sign it."""
    subject = _subject(request)
    begin, end = _period(lifetime, now.replace(microsecond=0), issuer.not_valid_after_utc)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject)
        .public_key(request.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    for extension, critical in _extensions(request, subject, issuer, usages):
        builder = builder.add_extension(extension, critical)
    return builder


def _subject(request: x509.CertificateSigningRequest) -> x509.Name:
    """The known attributes of the subject. All values of one attribute form one relative name."""
    parts = []
    for oid in _SUBJECT:
        found = list(dict.fromkeys(request.subject.get_attributes_for_oid(oid)))
        if found:
            parts.append(x509.RelativeDistinguishedName(found[-1:] if oid in _SINGLE else found))
    return x509.Name(parts)


def _period(lifetime: timedelta, now: datetime, issuer_ends: datetime) -> tuple[datetime, datetime]:
    if now >= issuer_ends:
        raise FormatError(f"the signing certificate has expired: {issuer_ends.isoformat()}")
    end = now + lifetime if lifetime < SHORT else now + lifetime - BACKDATE
    return now - BACKDATE, min(end, issuer_ends)


def _extensions(
    request: x509.CertificateSigningRequest, subject: x509.Name, issuer: x509.Certificate, usages: Collection[str]
) -> list[tuple[x509.ExtensionType, bool]]:
    unknown = [usage for usage in usages if usage not in _USAGES and usage not in _EXTENDED]
    if unknown:
        raise FormatError(f"unrecognized usage values: {', '.join(unknown)}")
    found: list[tuple[x509.ExtensionType, bool]] = []
    plain = {_USAGES[usage] for usage in usages if usage in _USAGES}
    if plain:
        found.append((_key_usage(plain), True))
    extended = list(dict.fromkeys(oid for usage, oid in _EXTENDED.items() if usage in usages))
    if extended:
        found.append((x509.ExtendedKeyUsage(extended), False))
    names = names_of(request)
    ordered = [name for kind in _NAMES for name in names if isinstance(name, kind)]
    if ordered:
        found.append((x509.SubjectAlternativeName(ordered), not subject.rdns))
    key_id = _key_id(issuer)
    if key_id is not None and issuer.subject != subject:
        found.append((x509.AuthorityKeyIdentifier(key_id, None, None), False))
    return found


def _key_usage(wanted: Collection[str]) -> x509.KeyUsage:
    """The key usage. encipher_only and decipher_only require key_agreement."""
    agreement = "key_agreement" in wanted
    only = {"encipher_only": agreement, "decipher_only": agreement}
    return x509.KeyUsage(**{name: name in wanted and only.get(name, True) for name in _USAGES.values()})


def _key_id(issuer: x509.Certificate) -> bytes | None:
    try:
        return issuer.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


log = logging.getLogger(__name__)

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey
_CURVES: Mapping[str, hashes.SHA384 | hashes.SHA512] = {"secp384r1": hashes.SHA384(), "secp521r1": hashes.SHA512()}


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

    def sign(
        self, request: x509.CertificateSigningRequest, usages: Collection[str], lifetime: timedelta, now: datetime
    ) -> bytes:
        """The certificate as PEM. Raises FormatError."""
        self._reload()
        certificate, key = self._current()
        builder = certificate_for(request, certificate, usages, lifetime, now)
        return builder.sign(key, _hash(key)).public_bytes(serialization.Encoding.PEM)

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
    try:
        certificates = x509.load_pem_x509_certificates(certificate)
        private = serialization.load_pem_private_key(key, None)
    except (ValueError, TypeError) as error:
        raise FormatError(f"not a PEM certificate and an unencrypted PEM key: {error}") from error
    if not isinstance(private, Key):
        raise FormatError("the key is of an unsupported kind: use RSA, ECDSA or Ed25519")
    if private.public_key() != certificates[0].public_key():
        raise FormatError("the key is not the certificate's")
    return certificates, private


def _hash(key: Key) -> hashes.SHA256 | hashes.SHA384 | hashes.SHA512 | None:
    if isinstance(key, ed25519.Ed25519PrivateKey):
        return None
    known = _CURVES.get(key.curve.name) if isinstance(key, ec.EllipticCurvePrivateKey) else None
    return known or hashes.SHA256()
