"""Certificates and private keys in PEM files, as upstream's programs read them.

upstream: staging/src/k8s.io/client-go/util/cert/pem.go#ParseCertsPEM, util/keyutil/key.go, Go's crypto/tls#X509KeyPair
"""

from collections.abc import Iterable

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes, PublicKeyTypes

from kcm_cli.machinery import der, pem
from kcm_cli.machinery.errors import FormatError


def certificates(text: bytes) -> list[x509.Certificate]:
    """The certificates of a bundle. Raises FormatError if there is none, or if one is invalid."""
    found = _certificates(pem.certificates(text))
    if not found:
        raise FormatError("not a PEM certificate: data does not contain any valid RSA or ECDSA certificates")
    return found


def chain(text: bytes) -> list[x509.Certificate]:
    """The certificates of a server or a client, the own one first. Raises FormatError."""
    found = _certificates(pem.chain(text))
    if not found:
        raise FormatError("not a PEM certificate: failed to find any in certificate input")
    return found


def private_key(text: bytes) -> PrivateKeyTypes:
    """The first valid private key of which the type of the block names the form. Raises FormatError."""
    for block in pem.blocks(text):
        if block.type in der.KEY_TYPES and der.key_form(block.content) == block.type:
            try:
                return _private_key(block.content)
            except FormatError:
                continue
    raise FormatError("not an unencrypted PEM key: data does not contain a valid RSA or ECDSA private key")


def pair_key(text: bytes) -> PrivateKeyTypes:
    """The private key of a server or a client: the first one, in any form. Raises FormatError."""
    content = pem.private_key(text)
    if content is None:
        raise FormatError("not an unencrypted PEM key: failed to find any in key input")
    return _private_key(content)


def public_keys(text: bytes) -> list[PublicKeyTypes]:
    """The public keys of private keys, public keys and certificates. Blocks of others are skipped."""
    return [key for block in pem.blocks(text) if (key := _public_key(block.content)) is not None]


def _certificates(contents: Iterable[bytes]) -> list[x509.Certificate]:
    try:
        return [x509.load_der_x509_certificate(content) for content in contents]
    except (ValueError, x509.InvalidVersion) as error:
        raise FormatError(f"not a PEM certificate: {error}") from error


def _private_key(content: bytes) -> PrivateKeyTypes:
    try:
        key = serialization.load_der_private_key(content, None, unsafe_skip_rsa_key_validation=True)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise FormatError(f"not an unencrypted PEM key: {error}") from error
    if isinstance(key, rsa.RSAPrivateKey):
        _check_numbers(key.private_numbers())
    return key


def _check_numbers(key: rsa.RSAPrivateNumbers) -> None:
    """Check that the numbers of an RSA key belong together, as Go does. Raises FormatError.

    OpenSSL's own check also tests whether they are prime, which takes 40 ms of the event loop for each key: a file of
    the operator's is not an attack. upstream: Go's crypto/internal/fips140/rsa#checkPrivateKey
    """
    public, p, q = key.public_numbers, key.p, key.q
    coprime = p > 1 and q > 1 and p * q == public.n and key.iqmp * q % p == 1 % p
    if not coprime or (key.dmp1, key.dmq1) != (key.d % (p - 1), key.d % (q - 1)):
        raise FormatError("not an unencrypted PEM key: the numbers of the RSA key do not belong together")
    if any((public.e * key.d - 1) % (prime - 1) for prime in (p, q)):
        raise FormatError("not an unencrypted PEM key: the exponents of the RSA key do not belong together")
    if abs(p - q).bit_length() <= public.n.bit_length() // 2 - 100:
        raise FormatError("not an unencrypted PEM key: the primes of the RSA key are too close to each other")


def _public_key(content: bytes) -> PublicKeyTypes | None:
    try:
        return _private_key(content).public_key()
    except FormatError:
        pass
    try:
        return serialization.load_der_public_key(content)
    except (ValueError, UnsupportedAlgorithm):
        pass
    try:
        return x509.load_der_x509_certificate(content).public_key()
    except (ValueError, UnsupportedAlgorithm, x509.InvalidVersion):
        return None
