"""Authentication by service account tokens.

Tokens of the TokenRequest API have audiences and an expiration time, and may be bound to an object that must exist.
Legacy tokens do not expire, but must be in their Secret. No objects are cached: tokens become invalid as soon as the
account, pod or Secret is deleted (in upstream within ten seconds).

upstream: pkg/serviceaccount/{claims,legacy,jwt}.go
"""

import base64
import hmac
from collections.abc import Sequence
from datetime import timedelta

import msgspec

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import INVALID_SINCE, LAST_USED
from kcm_cli.component.clock import Clock
from kcm_cli.component.tokens import LEGACY_ISSUER, TokenError, TokenVerifier
from kcm_cli.machinery import names
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.apiserver.store import NotFound, Store, Stored
from kcm_cli.sandbox.apiserver.types import Tree, User

SERVICE_ACCOUNTS = GVR("", "v1", "serviceaccounts")
SECRETS, PODS, NODES = GVR("", "v1", "secrets"), GVR("", "v1", "pods"), GVR("", "v1", "nodes")
ALL_ACCOUNTS = "system:serviceaccounts"
EXTRA_PREFIX = "authentication.kubernetes.io/"

_USER_PREFIX = "system:serviceaccount:"
_LEEWAY_S = 60
_LEGACY_PREFIX = "kubernetes.io/serviceaccount/"
_AUTO_GENERATED = (
    "Use tokens from the TokenRequest API or manually created secret-based tokens instead of auto-generated "
    "secret-based tokens."
)


class Authenticated(msgspec.Struct, frozen=True):
    """A user, and those of the requested audiences for which the token is valid."""

    user: User
    audiences: tuple[str, ...]


def user_name(namespace: str, name: str) -> str:
    """The user name of a service account."""
    return f"{_USER_PREFIX}{namespace}:{name}"


def split_user_name(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with a user name; None for other users."""
    if not user.startswith(_USER_PREFIX):
        return None
    namespace, colon, name = user[len(_USER_PREFIX) :].partition(":")
    if not colon or names.dns1123_label(namespace) or names.dns1123_subdomain(name):
        return None
    return namespace, name


def groups_of(namespace: str) -> tuple[str, str]:
    """The groups of all service accounts of a namespace."""
    return ALL_ACCOUNTS, f"{ALL_ACCOUNTS}:{namespace}"


class ServiceAccountTokens:
    """Authenticates tokens. audiences: the server's; those of tokens without audiences, too."""

    def __init__(
        self, store: Store, verifier: TokenVerifier, clock: Clock, *, issuers: Sequence[str], audiences: Sequence[str]
    ) -> None:
        self._store = store
        self._verifier = verifier
        self._clock = clock
        self._issuers = frozenset([*issuers, LEGACY_ISSUER])
        self.audiences = tuple(audiences)

    def authenticate(self, token: str, issuer: str, wanted: Sequence[str], warnings: list[str]) -> Authenticated | None:
        """The user of a token; None if ``issuer``, its unverified issuer, is unknown.

        wanted: the accepted audiences. Raises TokenError.
        """
        if issuer not in self._issuers:
            return None
        claims: Tree = self._verifier.claims(token)
        audiences = self._common_audiences(claims, wanted)
        if issuer == LEGACY_ISSUER:
            return Authenticated(self._legacy(token, claims, warnings), audiences)
        return Authenticated(self._bound(claims), audiences)

    def _common_audiences(self, claims: Tree, wanted: Sequence[str]) -> tuple[str, ...]:
        audience = claims.get("aud") or list(self.audiences)
        own: list[str] = [audience] if isinstance(audience, str) else audience
        common = tuple(each for each in wanted if each in own)
        if not common:
            raise TokenError(f"token audiences {_listed(own)} is invalid for the target audiences {_listed(wanted)}")
        return common

    # Tokens of the TokenRequest API

    def _bound(self, claims: Tree) -> User:
        self._check_times(claims)
        private: Tree = claims.get("kubernetes.io") or {}
        namespace = private.get("namespace", "")
        account: Tree = private.get("serviceaccount") or {}
        name, uid = account.get("name", ""), account.get("uid", "")
        found = self._account(namespace, name)
        if _uid(found) != uid:
            raise TokenError(f"service account UID ({_uid(found)}) does not match claim ({uid})")
        if self._past_deletion_leeway(found):
            raise TokenError(f"service account {namespace}/{name} has been deleted")
        extra: dict[str, tuple[str, ...]] = {}
        pod, node, secret = private.get("pod"), private.get("node"), private.get("secret")
        if secret is not None:
            self._check_bound(SECRETS, namespace, secret, "secret")
        if pod is not None:
            self._check_bound(PODS, namespace, pod, "pod")
            extra |= _reference("pod", pod)
        if node is not None:
            if pod is None:
                self._check_bound(NODES, "", node, "node")
            extra |= _reference("node", node)
        if claims.get("jti"):
            extra[f"{EXTRA_PREFIX}credential-id"] = (f"JTI={claims['jti']}",)
        return User(user_name(namespace, name), uid, groups_of(namespace), extra)

    def _check_times(self, claims: Tree) -> None:
        now = self._clock.now().timestamp()
        if now + _LEEWAY_S < claims.get("nbf", 0):
            raise TokenError("service account token is not valid yet")
        if "exp" in claims and now - _LEEWAY_S > claims["exp"]:
            raise TokenError("service account token has expired")
        if now + _LEEWAY_S < claims.get("iat", 0):
            raise TokenError("service account token is issued in the future")

    def _account(self, namespace: str, name: str) -> Tree:
        stored = self._store.get(SERVICE_ACCOUNTS, namespace, name)
        if stored is None:
            raise TokenError(f"serviceaccounts {quote(name)} not found")
        return stored.doc

    def _check_bound(self, gvr: GVR, namespace: str, reference: Tree, word: str) -> None:
        stored = self._store.get(gvr, namespace, reference.get("name", ""))
        if stored is None:
            raise TokenError("service account token has been invalidated")
        uid, claimed = _uid(stored.doc), reference.get("uid", "")
        if uid != claimed:
            raise TokenError(f"{word} UID ({uid}) does not match service account {word} ref claim ({claimed})")
        if self._past_deletion_leeway(stored.doc):
            raise TokenError("service account token has been invalidated")

    def _past_deletion_leeway(self, doc: Tree) -> bool:
        deleted = doc["metadata"].get("deletionTimestamp")
        if deleted is None:
            return False
        return parse_time(deleted) < self._clock.now() - timedelta(seconds=_LEEWAY_S)

    # Tokens in Secrets

    def _legacy(self, token: str, claims: Tree, warnings: list[str]) -> User:
        namespace, name, uid, secret_name = _legacy_claims(claims)
        stored = self._store.get(SECRETS, namespace, secret_name)
        if stored is None or "deletionTimestamp" in stored.doc["metadata"]:  # type: ignore[operator]
            raise TokenError("Token has been invalidated")
        secret: Tree = stored.doc
        held = base64.b64decode((secret.get("data") or {}).get("token", ""))
        if not hmac.compare_digest(held, token.encode()):
            raise TokenError("Token does not match server's copy")
        account = self._account(namespace, name)
        if "deletionTimestamp" in account["metadata"]:
            raise TokenError(f"ServiceAccount {namespace}/{name} has been deleted")
        if _uid(account) != uid:
            raise TokenError(f"ServiceAccount UID ({_uid(account)}) does not match claim ({uid})")
        self._note_use(stored)
        labels = secret["metadata"].get("labels") or {}
        if labels.get(INVALID_SINCE):
            raise TokenError(
                f"the token in secret {namespace}/{secret_name} for service account {namespace}/{name} has "
                "been marked invalid. Use tokens from the TokenRequest API or manually created secret-based "
                f"tokens, or remove the '{INVALID_SINCE}' label from the secret to temporarily allow "
                "use of this token"
            )
        if any(each.get("name") == secret_name for each in account.get("secrets") or ()):
            warnings.append(_AUTO_GENERATED)
        return User(user_name(namespace, name), uid, groups_of(namespace))

    def _note_use(self, stored: Stored) -> None:
        """Label the Secret with the date, once a day, for the legacy-service-account-token-cleaner."""
        now = self._clock.now()
        today, tomorrow = (f"{day:%Y-%m-%d}" for day in (now, now + timedelta(days=1)))
        current: Tree = stored.doc
        if (current["metadata"].get("labels") or {}).get(LAST_USED) in (today, tomorrow):
            return
        doc: Tree = stored.copy()
        doc["metadata"]["labels"] = {**(doc["metadata"].get("labels") or {}), LAST_USED: today}
        try:
            self._store.update(SECRETS, stored.namespace, stored.name, doc)
        except NotFound:
            return


def _legacy_claims(claims: Tree) -> tuple[str, str, str, str]:
    """Namespace, account, the account's uid, and Secret. Raises TokenError."""
    if not claims.get("sub"):
        raise TokenError("sub claim is missing")
    found: list[str] = []
    wanted = (
        ("namespace", "namespace"),
        ("secret.name", "secretName"),
        ("service-account.name", "serviceAccountName"),
        ("service-account.uid", "serviceAccountUID"),
    )
    for claim, word in wanted:
        value = claims.get(_LEGACY_PREFIX + claim)
        if not value:
            raise TokenError(f"{word} claim is missing")
        found.append(value)
    namespace, secret, name, uid = found
    if split_user_name(claims["sub"]) != (namespace, name):
        raise TokenError("sub claim is invalid")
    return namespace, name, uid, secret


def _reference(word: str, reference: Tree) -> dict[str, tuple[str, ...]]:
    name, uid = reference.get("name", ""), reference.get("uid", "")
    if not name or (word == "pod" and not uid):
        return {}
    extra: dict[str, tuple[str, ...]] = {f"{EXTRA_PREFIX}{word}-name": (name,)}
    if uid:
        extra[f"{EXTRA_PREFIX}{word}-uid"] = (uid,)
    return extra


def _uid(doc: Tree) -> str:
    return str(doc["metadata"].get("uid", ""))


def _listed(texts: Sequence[str]) -> str:
    return "[" + " ".join(quote(text) for text in texts) + "]"


def token_claims(account: Doc, *, now_s: int, expires_s: int) -> Tree:
    """The claims of all tokens of an account."""
    metadata: Tree = account["metadata"]  # type: ignore[assignment]  # stored objects have metadata
    namespace, name = metadata["namespace"], metadata["name"]
    return {
        "sub": user_name(namespace, name),
        "iat": now_s,
        "nbf": now_s,
        "exp": now_s + expires_s,
        "kubernetes.io": {
            "namespace": namespace,
            "serviceaccount": {"name": name, "uid": metadata["uid"]},
        },
    }
