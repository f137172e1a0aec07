"""Signs legacy tokens: JWTs without expiry in Secrets.

upstream: pkg/serviceaccount/legacy.go
"""

from pathlib import Path

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from kcm_cli.component import key_pairs
from kcm_cli.component.tokens import LEGACY_ISSUER, TokenSigner
from kcm_cli.engine.descriptor import StartError
from kcm_cli.machinery.errors import FormatError


class LegacyTokenSigner(TokenSigner):
    """Signs claims with one private key."""

    @classmethod
    def from_file(cls, path: str) -> "LegacyTokenSigner":
        """Load the private key. Raises StartError for a file without a usable one."""
        flag = f"--service-account-private-key-file {path}"
        try:
            key = key_pairs.private_key(Path(path).read_bytes())
        except OSError as error:
            raise StartError(f"{flag} cannot be read: {error.strerror}") from error
        except FormatError as error:
            raise StartError(f"{flag} holds no unencrypted PEM private key: {error}") from error
        kind = f"{flag} holds a key of an unsupported kind: use RSA or ECDSA (P-256, P-384, P-521)"
        if not isinstance(key, (rsa.RSAPrivateKey, ec.EllipticCurvePrivateKey)):
            raise StartError(kind)
        try:
            return cls(key, LEGACY_ISSUER)
        except ValueError as error:
            raise StartError(kind) from error

    def legacy_token(self, *, namespace: str, account: str, uid: str, secret: str) -> str:
        """The token of a Secret of type kubernetes.io/service-account-token."""
        prefix = "kubernetes.io/serviceaccount"
        return self.sign(
            {
                "iss": self.issuer,
                f"{prefix}/namespace": namespace,
                f"{prefix}/secret.name": secret,
                f"{prefix}/service-account.name": account,
                f"{prefix}/service-account.uid": uid,
                "sub": f"system:serviceaccount:{namespace}:{account}",
            }
        )
