"""All of security, put together for one server."""

import random

import msgspec

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
from kcm_cli.sandbox.apiserver.security.tokens import TokenSigner, TokenVerifier, TrustedKey
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store


class Security(msgspec.Struct, frozen=True):
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
        settings: Settings,
        address: str,
    ) -> "Security":
        """address: host:port by which the server calls itself. Raises ValueError for keys that are none."""
        issuers = settings.issuers
        audiences = settings.audiences or issuers
        signer = TokenSigner.from_pem(certificates.service_account_key, issuers[0])
        keys = [key for pem in settings.token_keys for key in TrustedKey.all_of(pem)] or [signer.public]
        accounts = ServiceAccountTokens(store, TokenVerifier(keys), clock, issuers=issuers, audiences=audiences)
        authenticator = Authenticator(
            clock,
            accounts,
            tokens=settings.tokens,
            client_cas=certificates.ca.certificate + settings.client_cas,
            anonymous=settings.anonymous,
        )
        authorizer = Authorizer(store, settings.authorization)
        return cls(
            authenticator=authenticator,
            impersonator=Impersonator(authorizer),
            authorizer=authorizer,
            escalation=EscalationGuard(authorizer),
            reviews=Reviews(authorizer, authenticator, clock),
            token_requests=TokenRequests(store, signer, clock, rng, audiences=audiences),
            openid=OpenIdMetadata(signer, address, tuple(keys)),
        )
