"""JSON web tokens: signing, and verification of signatures. Claims are not checked here.

upstream: pkg/serviceaccount/jwt.go, pkg/serviceaccount/openidmetadata.go
"""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from kcm_cli.component import key_pairs
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.recent import Bounded

PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey

LEGACY_ISSUER = "kubernetes/serviceaccount"
"""The issuer of tokens without expiry in Secrets."""
_REMEMBERED = 4096

_CURVES: Mapping[str, tuple[str, str, hashes.HashAlgorithm]] = {
    "secp256r1": ("ES256", "P-256", hashes.SHA256()),
    "secp384r1": ("ES384", "P-384", hashes.SHA384()),
    "secp521r1": ("ES512", "P-521", hashes.SHA512()),
}


class TokenError(Exception):
    """A token is invalid."""


class TokenSigner:
    """Signs claims. Raises ValueError for a key that is neither RSA nor on a JWS curve."""

    def __init__(self, key: PrivateKey, issuer: str) -> None:
        self._key = key
        self.issuer = issuer
        self.public = TrustedKey.of(key.public_key())
        header = {"alg": self.public.algorithm, "kid": self.public.key_id}
        self._header = _encoded(codec.encode(header))

    @classmethod
    def from_pem(cls, pem: bytes, issuer: str) -> "TokenSigner":
        """A signer with a private key. Raises ValueError."""
        return cls(_private_key(pem), issuer)

    def sign(self, claims: Doc) -> str:
        """A token with these claims and ``issuer``."""
        signed = self._header + b"." + _encoded(codec.encode({**claims, "iss": self.issuer}))
        return (signed + b"." + _encoded(self._signature(signed))).decode()

    def _signature(self, data: bytes) -> bytes:
        key = self._key
        if isinstance(key, rsa.RSAPrivateKey):
            return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        digest = _CURVES[key.curve.name][2]
        first, second = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
        size = (key.curve.key_size + 7) // 8
        return first.to_bytes(size, "big") + second.to_bytes(size, "big")


class TrustedKey(msgspec.Struct, frozen=True):
    """A public key, its ID in token headers, and its algorithm."""

    key: PublicKey
    key_id: str
    algorithm: str

    @classmethod
    def of(cls, key: PublicKey) -> "TrustedKey":
        """Raises ValueError for an unknown curve."""
        encoding, form = serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        key_id = _encoded(hashlib.sha256(key.public_bytes(encoding, form)).digest()).decode()
        if isinstance(key, rsa.RSAPublicKey):
            return cls(key, key_id, "RS256")
        if key.curve.name not in _CURVES:
            raise ValueError("unknown private key curve, must be 256, 384, or 521")
        return cls(key, key_id, _CURVES[key.curve.name][0])

    @classmethod
    def all_of(cls, pem: bytes) -> "list[TrustedKey]":
        """The keys in a PEM file: of private keys, public keys and certificates. Raises ValueError."""
        keys = key_pairs.public_keys(pem)
        found = [cls.of(key) for key in keys if isinstance(key, (ec.EllipticCurvePublicKey, rsa.RSAPublicKey))]
        if not found:
            raise ValueError("data does not contain any valid RSA or ECDSA public keys")
        return found

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether a signature of the data is by this key."""
        try:
            self._verify(data, signature)
        except (InvalidSignature, ValueError):
            return False
        return True

    def jwk(self) -> Doc:
        """The key as a JSON web key."""
        doc: Doc = {"use": "sig", "kid": self.key_id, "alg": self.algorithm}
        if isinstance(self.key, rsa.RSAPublicKey):
            numbers = self.key.public_numbers()
            return {**doc, "kty": "RSA", "n": _number(numbers.n), "e": _number(numbers.e)}
        point, size = self.key.public_numbers(), (self.key.curve.key_size + 7) // 8
        curve = _CURVES[self.key.curve.name][1]
        return {**doc, "kty": "EC", "crv": curve, "x": _number(point.x, size), "y": _number(point.y, size)}

    def _verify(self, data: bytes, signature: bytes) -> None:
        key = self.key
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(signature, data, padding.PKCS1v15(), hashes.SHA256())
            return
        half = (key.curve.key_size + 7) // 8
        if len(signature) != 2 * half:
            raise InvalidSignature
        first, second = signature[:half], signature[half:]
        der = encode_dss_signature(int.from_bytes(first, "big"), int.from_bytes(second, "big"))
        key.verify(der, data, ec.ECDSA(_CURVES[key.curve.name][2]))


class TokenVerifier:
    """Verifies signatures. Caches valid tokens."""

    def __init__(self, keys: Sequence[TrustedKey]) -> None:
        self.keys = tuple(keys)
        self._good: Bounded[str, Doc] = Bounded(_REMEMBERED)

    def claims(self, token: str) -> Doc:
        """The claims of a token with a valid signature. Raises TokenError."""
        known = self._good.get(token)
        if known is not None:
            return known
        header, claims, data, signature = _parts(token)
        named = header.get("kid")
        candidates = [key for key in self.keys if not named or key.key_id == named]
        if not candidates:
            raise TokenError("invalid signature, no keys found")
        algorithm = header.get("alg")
        if not any(key.algorithm == algorithm and key.verify(data, signature) for key in candidates):
            raise TokenError("go-jose/go-jose: error in cryptographic primitive")
        self._good[token] = claims
        return claims


@lru_cache(maxsize=4)
def _private_key(pem: bytes) -> PrivateKey:
    """The key in a PEM file, cached since loading an RSA key checks its primes, which takes 30 ms."""
    key = key_pairs.private_key(pem)
    if not isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
        raise ValueError("a service account key must be an RSA or an ECDSA key")
    return key


def unverified_issuer(token: str) -> str | None:
    """The issuer in a token, empty without one; None if it is no token in compact form."""
    try:
        issuer = _parts(token)[1].get("iss")
    except TokenError:
        return None
    return issuer if isinstance(issuer, str) else ""


def _parts(token: str) -> tuple[Doc, Doc, bytes, bytes]:
    """Header, claims, signed data and signature. Raises TokenError."""
    head, _, rest = token.partition(".")
    body, _, tail = rest.partition(".")
    try:
        header, claims = codec.decode_doc(_decoded(head)), codec.decode_doc(_decoded(body))
        return header, claims, f"{head}.{body}".encode("ascii"), _decoded(tail)
    except ValueError as error:  # binascii.Error, codec.DecodeError, UnicodeError, and b64decode's for letters like é
        raise TokenError("not a JSON web token") from error


def _encoded(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _decoded(text: str) -> bytes:
    if not text or any(char in text for char in ".+/"):
        raise binascii.Error("not base64url")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


def _number(value: int, size: int = 0) -> str:
    return _encoded(value.to_bytes(size or (value.bit_length() + 7) // 8, "big")).decode()
