"""Certificate requests as Go's crypto/x509 reads them.

The API server, its admission and kubectl show the request that Go reads. What is signed has to be that request, so
nothing else reads one here. What Go may read and this reader does not (``UnsupportedError``) is not signed:

- times in the subject, tags above 30, URIs that Go might change, RSA keys of more than 16384 bits
- requests of more than 64 KiB, which would hold the loop for long

upstream: crypto/x509/x509.go#ParseCertificateRequest, CertificateRequest.CheckSignature
"""

import re
from collections.abc import Callable, Mapping

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from kcm_cli.machinery import der, distinguished_names, pem
from kcm_cli.machinery.der import Reader, UnsupportedError
from kcm_cli.machinery.errors import FormatError

TYPE = "CERTIFICATE REQUEST"
_EXTENSION_REQUEST = "1.2.840.113549.1.9.14"
_SUBJECT_ALTERNATIVE_NAME = "2.5.29.17"
_EMAIL, _DNS, _URI, _IP = 1, 2, 6, 7
_IP_SIZES = (4, 16)
_ATTRIBUTES = der.CONTEXT | der.CONSTRUCTED
_MOST_BYTES = 64 * 1024
_MAX_RSA_BITS = 16384
_MIN_RSA_BITS = 1024
_MAX_RSA_EXPONENT = 2**31 - 1

Hash = hashes.SHA1 | hashes.SHA256 | hashes.SHA384 | hashes.SHA512
PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey | ed25519.Ed25519PublicKey


class CertificateRequest(msgspec.Struct, frozen=True):
    """A request. subject: DER, as Go writes it into the certificate. ips: four or 16 bytes each. public_key: DER."""

    subject: bytes
    common_name: str
    organizations: tuple[str, ...]
    dns_names: tuple[str, ...]
    emails: tuple[str, ...]
    ips: tuple[bytes, ...]
    uris: tuple[str, ...]
    public_key: bytes


def from_pem(text: bytes) -> CertificateRequest:
    """The request in a PEM text, whose signature is valid. Raises FormatError."""
    block = pem.first(text)
    if block is None or block.type != TYPE:
        raise FormatError("PEM block type must be CERTIFICATE REQUEST")
    return from_der(block.content)


def from_der(data: bytes) -> CertificateRequest:
    """A request, whose signature is valid. Raises FormatError."""
    if len(data) > _MOST_BYTES:
        raise UnsupportedError(f"more than {_MOST_BYTES} bytes are not supported")
    outer = Reader(data)
    whole = outer.content(der.SEQUENCE)
    if not outer.done:
        raise FormatError("asn1: syntax error: trailing data")
    signed = whole.next(der.SEQUENCE)
    algorithm = whole.content(der.SEQUENCE)
    scheme = _scheme(algorithm)
    signature = whole.bits()

    info = Reader(signed.content)
    info.int64()
    subject = info.any()
    key = _public_key(info.content(der.SEQUENCE))
    extensions = _extensions(info.content(_ATTRIBUTES))
    names = distinguished_names.values(subject.full)
    alternatives = _alternative_names(extensions.get(_SUBJECT_ALTERNATIVE_NAME))
    _check_signature(scheme, key, signature, signed.full)
    return CertificateRequest(
        distinguished_names.written(names),
        distinguished_names.common_name(names),
        tuple(names.get(distinguished_names.ORGANIZATION, ())),
        *alternatives,
        key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo),
    )


# --- extensions


def _extensions(attributes: Reader) -> Mapping[str, bytes]:
    """The requested extensions. Attributes that are none, or have no value, are left out."""
    found: dict[str, bytes] = {}
    for item in _elements(attributes):
        for name, value in _requested(item):
            if name in found:
                raise FormatError("x509: certificate request contains duplicate requested extensions")
            found[name] = value
    return found


def _requested(attribute: der.Element) -> list[tuple[str, bytes]]:
    """The extensions in the first value of an attribute."""
    try:
        parts = Reader(attribute.full).content(der.SEQUENCE)
        name, values = parts.oid(), _elements(parts.content(der.SET))
    except UnsupportedError:
        raise
    except FormatError:
        return []
    if name != _EXTENSION_REQUEST or not values:
        return []
    found = []
    extensions = Reader(values[0].full).content(der.SEQUENCE)
    while not extensions.done:
        extension = extensions.content(der.SEQUENCE)
        name = extension.oid()
        if extension.has(der.BOOLEAN):
            extension.boolean()
        found.append((name, extension.next(der.OCTET_STRING).content))
    return found


def _elements(reader: Reader) -> list[der.Element]:
    found = []
    while not reader.done:
        found.append(reader.any())
    return found


_Names = tuple[tuple[str, ...], tuple[str, ...], tuple[bytes, ...], tuple[str, ...]]


def _alternative_names(extension: bytes | None) -> _Names:
    """DNS names, email addresses, IP addresses and URIs. Other kinds are left out."""
    found: dict[int, list[bytes]] = {_DNS: [], _EMAIL: [], _IP: [], _URI: []}
    for name in _elements(Reader(extension).content(der.SEQUENCE)) if extension is not None else ():
        kind = name.tag ^ der.CONTEXT
        if kind in found:
            found[kind].append(name.content)
    if any(len(ip) not in _IP_SIZES for ip in found[_IP]):
        raise FormatError("x509: cannot parse IP address")
    if not all(text.isascii() for kind in (_DNS, _EMAIL, _URI) for text in found[kind]):
        raise FormatError("x509: SAN is malformed")
    dns, emails, uris = (tuple(text.decode() for text in found[kind]) for kind in (_DNS, _EMAIL, _URI))
    if not all(map(_is_plain_uri, uris)):
        raise UnsupportedError("x509: the form of a URI is not supported")
    return dns, emails, tuple(found[_IP]), uris


_PLAIN = r"(?:[\w\-.~!$&'()*+,;=:@]|%[0-9A-Fa-f]{2})"
_is_plain_uri = re.compile(
    rf"[a-z][a-z0-9+.-]*:(?://\w[\w-]*(?:\.\w[\w-]*)*(?::[0-9]+)?(?:/(?:{_PLAIN}|/)*)?|{_PLAIN}+)(?:\?(?:{_PLAIN}|[/?])*)?(?:#{_PLAIN}+)?",
    re.ASCII,
).fullmatch
"""A URI that Go reads and writes unchanged."""


# --- the key and the signature


def _public_key(reader: Reader) -> PublicKey:
    algorithm = reader.content(der.SEQUENCE)
    read = _KEYS.get(algorithm.oid())
    parameters = None if algorithm.done else algorithm.any()
    content = reader.bits()
    if read is None:
        raise FormatError("x509: cannot verify signature: algorithm unimplemented")
    try:
        return read(parameters, content)
    except UnsupportedAlgorithm:
        raise UnsupportedError("x509: the public key is not supported") from None


def _rsa(parameters: der.Element | None, content: bytes) -> PublicKey:
    if parameters is None or parameters.full != der.element(der.NULL):
        raise FormatError("x509: RSA key missing NULL parameters")
    numbers = Reader(content).content(der.SEQUENCE)
    modulus, exponent = numbers.integer(), numbers.int64()
    if not (modulus % 2 and exponent % 2 and 1 < exponent <= _MAX_RSA_EXPONENT):
        raise FormatError("crypto/rsa: invalid public key")
    if modulus.bit_length() < _MIN_RSA_BITS or modulus < 0:
        raise FormatError(f"crypto/rsa: {modulus.bit_length()}-bit keys are insecure")
    if modulus.bit_length() > _MAX_RSA_BITS:
        raise UnsupportedError(f"crypto/rsa: keys of more than {_MAX_RSA_BITS} bits are not supported")
    return rsa.RSAPublicNumbers(exponent, modulus).public_key()


def _ecdsa(parameters: der.Element | None, content: bytes) -> PublicKey:
    if parameters is None or (curve := _EC_CURVES.get(Reader(parameters.full).oid())) is None:
        raise FormatError("x509: unsupported elliptic curve")
    if not content.startswith(b"\x04"):
        raise FormatError("ecdsa: invalid uncompressed public key")
    try:
        return ec.EllipticCurvePublicKey.from_encoded_point(curve, content)
    except ValueError:
        raise FormatError("ecdsa: invalid uncompressed public key") from None


def _ed25519(parameters: der.Element | None, content: bytes) -> PublicKey:
    if parameters is not None:
        raise FormatError("x509: Ed25519 key encoded with illegal parameters")
    try:
        return ed25519.Ed25519PublicKey.from_public_bytes(content)
    except ValueError:
        raise FormatError("x509: wrong Ed25519 public key size") from None


_KEYS: Mapping[str, Callable[[der.Element | None, bytes], PublicKey]] = {
    "1.2.840.113549.1.1.1": _rsa,
    "1.2.840.10045.2.1": _ecdsa,
    "1.3.101.112": _ed25519,
}
_EC_CURVES: Mapping[str, ec.EllipticCurve] = {
    "1.3.132.0.33": ec.SECP224R1(),
    "1.2.840.10045.3.1.7": ec.SECP256R1(),
    "1.3.132.0.34": ec.SECP384R1(),
    "1.3.132.0.35": ec.SECP521R1(),
}


class _Scheme(msgspec.Struct, frozen=True):
    """How a request is signed. hash: None for Ed25519."""

    key: type[PublicKey]
    hash: Hash | None
    pss: bool = False


_SHA1, _SHA256, _SHA384, _SHA512 = hashes.SHA1(), hashes.SHA256(), hashes.SHA384(), hashes.SHA512()
_RSA, _EC = rsa.RSAPublicKey, ec.EllipticCurvePublicKey
_ED25519 = "1.3.101.112"
_SCHEMES: Mapping[str, _Scheme] = {
    "1.2.840.113549.1.1.5": _Scheme(_RSA, _SHA1),
    "1.3.14.3.2.29": _Scheme(_RSA, _SHA1),
    "1.2.840.113549.1.1.11": _Scheme(_RSA, _SHA256),
    "1.2.840.113549.1.1.12": _Scheme(_RSA, _SHA384),
    "1.2.840.113549.1.1.13": _Scheme(_RSA, _SHA512),
    "1.2.840.10045.4.1": _Scheme(_EC, _SHA1),
    "1.2.840.10045.4.3.2": _Scheme(_EC, _SHA256),
    "1.2.840.10045.4.3.3": _Scheme(_EC, _SHA384),
    "1.2.840.10045.4.3.4": _Scheme(_EC, _SHA512),
}
"""The schemes that Go accepts for requests: SHA-1 too, but not MD5 and DSA."""
_PSS, _MGF1 = "1.2.840.113549.1.1.10", "1.2.840.113549.1.1.8"
_PSS_HASHES: Mapping[tuple[str, int], Hash] = {
    ("2.16.840.1.101.3.4.2.1", 32): _SHA256,
    ("2.16.840.1.101.3.4.2.2", 48): _SHA384,
    ("2.16.840.1.101.3.4.2.3", 64): _SHA512,
}


def _scheme(algorithm: Reader) -> _Scheme | None:
    """The scheme of an AlgorithmIdentifier; None for one that Go does not verify."""
    name = algorithm.oid()
    parameters = None if algorithm.done else algorithm.any()
    if name == _ED25519:
        return _Scheme(ed25519.Ed25519PublicKey, None) if parameters is None else None
    if name != _PSS:
        return _SCHEMES.get(name)
    try:
        found = _pss(parameters)
    except UnsupportedError:
        raise
    except FormatError:
        return None
    return _Scheme(_RSA, found, pss=True) if found is not None else None


def _pss(parameters: der.Element | None) -> Hash | None:
    """The hash of RSA-PSS parameters with the salt and the MGF that belong to it."""
    reader = Reader(parameters.full if parameters is not None else b"").content(der.SEQUENCE)
    digest = _explicit(reader, 0).content(der.SEQUENCE)
    digest_name, digest_ok = digest.oid(), _no_parameters(digest)
    mask = _explicit(reader, 1).content(der.SEQUENCE)
    mask_name = mask.oid()
    inner = mask.content(der.SEQUENCE)
    inner_name, inner_ok = inner.oid(), _no_parameters(inner)
    salt = _explicit(reader, 2).int64()
    trailer = 1 if reader.done else _explicit(reader, 3).int64()
    if not digest_ok or not inner_ok or mask_name != _MGF1 or inner_name != digest_name or trailer != 1:
        return None
    return _PSS_HASHES.get((digest_name, salt))


def _no_parameters(algorithm: Reader) -> bool:
    return algorithm.done or algorithm.any().full == der.element(der.NULL)


def _explicit(reader: Reader, number: int) -> Reader:
    """The element in an explicit tag, of which there is only one."""
    element = reader.next(der.CONTEXT | der.CONSTRUCTED | number)
    if len(der.split(element.content)) != 1:
        raise UnsupportedError("asn1: structure error: explicit tag with several elements")
    return Reader(element.content)


def _check_signature(scheme: _Scheme | None, key: PublicKey, signature: bytes, data: bytes) -> None:
    if scheme is None or not isinstance(key, scheme.key):
        raise FormatError("x509: cannot verify signature: algorithm unimplemented")
    try:
        _verify(scheme, key, signature, data)
    except (InvalidSignature, ValueError):  # ValueError: the key is too small for the hash
        raise FormatError("x509: signature verification failed") from None
    except UnsupportedAlgorithm as error:
        raise UnsupportedError(f"x509: cannot verify signature: {error}") from None


def _verify(scheme: _Scheme, key: PublicKey, signature: bytes, data: bytes) -> None:
    if isinstance(key, ed25519.Ed25519PublicKey):
        key.verify(signature, data)
        return
    digest = scheme.hash
    assert digest is not None
    if isinstance(key, ec.EllipticCurvePublicKey):
        key.verify(signature, data, ec.ECDSA(digest))
    elif scheme.pss:
        key.verify(signature, data, padding.PSS(padding.MGF1(digest), digest.digest_size), digest)
    else:
        key.verify(signature, data, padding.PKCS1v15(), digest)
