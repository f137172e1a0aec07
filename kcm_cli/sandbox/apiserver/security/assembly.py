"""Assembles the security of a server."""

import random

import msgspec

from kcm_cli.component.clock import Clock
from kcm_cli.component.tokens import TokenSigner, TokenVerifier, TrustedKey
from kcm_cli.sandbox.apiserver.security.authenticator import Authenticator
from kcm_cli.sandbox.apiserver.security.authorizer import Authorizer
from kcm_cli.sandbox.apiserver.security.certificates import Certificates
from kcm_cli.sandbox.apiserver.security.impersonation import Impersonator
from kcm_cli.sandbox.apiserver.security.openid import OpenIdMetadata
from kcm_cli.sandbox.apiserver.security.reviews import Reviews
from kcm_cli.sandbox.apiserver.security.service_accounts import ServiceAccountTokens
from kcm_cli.sandbox.apiserver.security.token_requests import TokenRequests
from kcm_cli.sandbox.apiserver.settings import Settings
from kcm_cli.sandbox.apiserver.store import Store


class Security(msgspec.Struct, frozen=True):
    """The parts of a server's security, in the order of their use."""

    authenticator: Authenticator
    impersonator: Impersonator
    authorizer: Authorizer
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
        """address: host:port at which the server reaches itself. Raises ValueError for invalid keys."""
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
            proxies=settings.proxies,
            anonymous=settings.anonymous,
        )
        authorizer = Authorizer(store, settings.authorization)
        return cls(
            authenticator=authenticator,
            impersonator=Impersonator(authorizer),
            authorizer=authorizer,
            reviews=Reviews(authorizer, authenticator, clock),
            token_requests=TokenRequests(store, signer, clock, rng, audiences=audiences),
            openid=OpenIdMetadata(signer, address, tuple(keys)),
        )
