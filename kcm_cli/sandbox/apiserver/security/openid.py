"""OpenID discovery documents, with which others can verify service account tokens.

upstream: pkg/serviceaccount/openidmetadata.go, pkg/routes/openidmetadata.go
"""

from collections.abc import Mapping

from kcm_cli.component.tokens import TokenSigner, TrustedKey
from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response

CONFIGURATION_PATH, KEYS_PATH = "/.well-known/openid-configuration", "/openid/v1/jwks"


class OpenIdMetadata:
    """Serves the two paths. ``address``: host:port at which the server reaches itself."""

    def __init__(self, signer: TokenSigner, address: str, others: tuple[TrustedKey, ...] = ()) -> None:
        keys = (signer.public, *(key for key in others if key != signer.public))
        configuration = {
            "issuer": signer.issuer,
            "jwks_uri": f"https://{address}{KEYS_PATH}",
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": sorted({key.algorithm for key in keys}),
        }
        self._answers: Mapping[str, Response] = {
            CONFIGURATION_PATH: _answer("application/json", configuration),
            KEYS_PATH: _answer("application/jwk-set+json", {"keys": [key.jwk() for key in keys]}),
        }

    def answer(self, path: str) -> Response | None:
        """The response for a path; None for other paths."""
        return self._answers.get(path.rstrip("/"))


def _answer(content_type: str, document: object) -> Response:
    headers = {"content-type": content_type, "cache-control": "public, max-age=3600"}
    return Response(200, headers, codec.encode(document))
