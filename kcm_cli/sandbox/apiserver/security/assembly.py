"""All of security, put together for one server."""

import random
from collections.abc import Mapping
from dataclasses import dataclass

from kcm_cli.component.clock import Clock
from kcm_cli.sandbox.apiserver.security.authenticator import Authenticator
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.security.escalation import EscalationGuard
from kcm_cli.sandbox.apiserver.security.impersonation import Impersonator
from kcm_cli.sandbox.apiserver.security.openid import OpenIdMetadata
from kcm_cli.sandbox.apiserver.security.reviews import Reviews
from kcm_cli.sandbox.apiserver.security.service_accounts import ServiceAccountTokens
from kcm_cli.sandbox.apiserver.security.token_requests import TokenRequests
from kcm_cli.sandbox.apiserver.security.tokens import TokenSigner, TokenVerifier
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import User

ISSUER = "https://kubernetes.default.svc"


@dataclass(frozen=True, slots=True)
class Security:
    """What a server asks of security, in the order in which a request meets it."""

    authenticator: Authenticator
    impersonator: Impersonator
    authorizer: Authorizer
    escalation: EscalationGuard
    reviews: Reviews
    token_requests: TokenRequests
    openid: OpenIdMetadata

    @classmethod
    def assemble(
        cls,
        store: Store,
        clock: Clock,
        rng: random.Random,
        certificates: Certificates,
        *,
        tokens: Mapping[str, User],
        address: str,
        issuer: str = ISSUER,
    ) -> "Security":
        """tokens: static bearer tokens. address: host:port by which the server calls itself."""
        signer = TokenSigner.from_pem(certificates.service_account_key, issuer)
        accounts = ServiceAccountTokens(
            store, TokenVerifier([signer.public]), clock, issuer=issuer, audiences=(issuer,)
        )
        authenticator = Authenticator(clock, accounts, tokens=tokens, client_cas=certificates.ca.certificate)
        authorizer = Authorizer(store)
        return cls(
            authenticator=authenticator,
            impersonator=Impersonator(authorizer),
            authorizer=authorizer,
            escalation=EscalationGuard(authorizer),
            reviews=Reviews(authorizer, authenticator, clock),
            token_requests=TokenRequests(store, signer, clock, rng, audiences=(issuer,)),
            openid=OpenIdMetadata(signer, address),
        )
