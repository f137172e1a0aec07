"""Signs legacy tokens: JWTs without expiry in Secrets.

RSA keys sign with RS256, P-256, P-384 and P-521 keys with ES256, ES384 and ES512.

upstream: pkg/serviceaccount/jwt.go, legacy.go
"""

import hashlib
from pathlib import Path

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery import codec
from kcm_cli.machinery.formats import base64url_text

ISSUER = "kubernetes/serviceaccount"
_CURVES: dict[str, tuple[str, hashes.HashAlgorithm, int]] = {
    "secp256r1": ("ES256", hashes.SHA256(), 32),
    "secp384r1": ("ES384", hashes.SHA384(), 48),
    "secp521r1": ("ES512", hashes.SHA512(), 66),
}


class TokenSigner:
    """Signs claims with one private key."""

    def __init__(self, key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> None:
        self._key = key
        self._algorithm = "RS256" if isinstance(key, rsa.RSAPrivateKey) else _CURVES[key.curve.name][0]
        self._key_id = _key_id(key)

    @classmethod
    def from_file(cls, path: str) -> "TokenSigner":
        """Load the private key. Raises StartError for a file without a usable one."""
        flag = f"--service-account-private-key-file {path}"
        try:
            key = serialization.load_pem_private_key(Path(path).read_bytes(), None)
        except OSError as error:
            raise StartError(f"{flag} cannot be read: {error.strerror}") from error
        except (ValueError, TypeError) as error:
            raise StartError(f"{flag} holds no unencrypted PEM private key: {error}") from error
        if isinstance(key, rsa.RSAPrivateKey):
            return cls(key)
        if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
            return cls(key)
        raise StartError(f"{flag} holds a key of an unsupported kind: use RSA or ECDSA (P-256, P-384, P-521)")

    def legacy_token(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """The token of a Secret of type kubernetes.io/service-account-token."""
        prefix = "kubernetes.io/serviceaccount"
        claims: codec.Doc = {
            "iss": ISSUER,
            f"{prefix}/namespace": namespace,
            f"{prefix}/secret.name": secret,
            f"{prefix}/service-account.name": account,
            f"{prefix}/service-account.uid": uid,
            "sub": f"system:serviceaccount:{namespace}:{account}",
        }
        header: codec.Doc = {"alg": self._algorithm, "kid": self._key_id}
        signed = f"{base64url_text(codec.encode(header))}.{base64url_text(codec.encode(claims))}"
        return f"{signed}.{base64url_text(self._sign(signed.encode()))}"

    def _sign(self, data: bytes) -> bytes:
        key = self._key
        if isinstance(key, rsa.RSAPrivateKey):
            return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
        _, digest, size = _CURVES[key.curve.name]
        r, s = decode_dss_signature(key.sign(data, ec.ECDSA(digest)))
        return r.to_bytes(size, "big") + s.to_bytes(size, "big")


def _key_id(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> str:
    """The hash of the public key, by which the API server finds the verification key."""
    public = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return base64url_text(hashlib.sha256(public).digest())
