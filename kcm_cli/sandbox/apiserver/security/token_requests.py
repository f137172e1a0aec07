"""The ``token`` subresource of service accounts, which issues tokens.

upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go
"""

import random
import uuid
from collections.abc import Mapping
from datetime import timedelta

from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.component.tokens import TokenSigner
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.quoting import quote
from kcm_cli.machinery.times import format_time
from kcm_cli.sandbox.apiserver.errors import bad_request, conflict, invalid_kind, not_found
from kcm_cli.sandbox.apiserver.security.service_accounts import (
    NODES,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    token_claims,
)
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import ApiError, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation.errors import invalid
from kcm_cli.sandbox.apiserver.validation.volume_projections import TOKEN_SECONDS

_GROUP, _KIND = "authentication.k8s.io", "TokenRequest"
_DEFAULT_S = 3600
_PROJECTED_S = 3607
"""The expirationSeconds of the ServiceAccount admission plugin. Such tokens are valid for ``_EXTENDED_S``."""
_EXTENDED_S = 365 * 24 * 3600
_BINDABLE: Mapping[str, tuple[GVR, str]] = {
    "Pod": (PODS, "pod"),
    "Secret": (SECRETS, "secret"),
    "Node": (NODES, "node"),
}


def default(request: Tree) -> None:
    """Set the default of expirationSeconds."""
    spec: Tree = request.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _DEFAULT_S


class TokenRequests:
    """Handles create of ``serviceaccounts/token``."""

    def __init__(
        self,
        store: Store,
        signer: TokenSigner,
        clock: Clock,
        rng: random.Random,
        *,
        audiences: tuple[str, ...],
    ) -> None:
        self._store = store
        self._signer = signer
        self._clock = clock
        self._random = rng
        self._audiences = audiences

    def create(self, namespace: str, name: str, doc: Doc) -> Doc:
        """``prepare`` and ``issue``."""
        return self.issue(self.prepare(namespace, name, doc), doc)

    def issue(self, account: Tree, doc: Doc) -> Doc:
        """The TokenRequest with its status. ``doc`` was prepared for the service account, and is changed. Raises
        ApiError."""
        request: Tree = doc
        metadata, spec = account["metadata"], request["spec"]
        reference: Tree | None = spec.setdefault("boundObjectRef", None)
        bound = self._bound(metadata["namespace"], metadata["name"], reference) if reference is not None else {}
        now = self._clock.now()
        expires_s: int = spec["expirationSeconds"]
        lifetime_s = expires_s
        extend = "pod" in bound and expires_s == _PROJECTED_S and set(spec["audiences"]) <= set(self._audiences)
        if extend:
            lifetime_s = _EXTENDED_S
        now_s = int(now.timestamp())
        claims = token_claims(account, now_s=now_s, expires_s=lifetime_s)
        claims["aud"] = spec["audiences"]
        claims["jti"] = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
        claims["kubernetes.io"] |= bound
        if extend:
            claims["kubernetes.io"]["warnafter"] = now_s + expires_s
        request["status"] = {
            "token": self._signer.sign(claims),
            "expirationTimestamp": format_time(now + timedelta(seconds=expires_s)),
        }
        return request

    def prepare(self, namespace: str, name: str, doc: Doc) -> Tree:
        """Check a TokenRequest, and complete its metadata and spec. Returns the service account. Raises ApiError."""
        request: Tree = doc
        metadata: Tree = request.get("metadata") or {}
        if metadata.get("namespace") not in (None, "", namespace):
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        if metadata.get("name") not in (None, "", name):
            error = invalid("metadata.name", metadata["name"], "must match the service account name if specified")
            raise _invalid(name, error)
        stored = self._store.get(SERVICE_ACCOUNTS, namespace, name)
        if stored is None:
            raise not_found("", "serviceaccounts", name)
        account: Tree = stored.doc
        uid, given = account["metadata"]["uid"], metadata.get("uid")
        if given and given != uid:
            why = f"the UID in the token request ({given}) does not match the UID of the service account ({uid})"
            raise conflict(_GROUP, _KIND, name, why)
        created = format_time(self._clock.now())
        request["metadata"] = {
            **metadata,
            "name": name,
            "namespace": namespace,
            "uid": uid,
            "creationTimestamp": created,
        }
        self._complete_spec(request)
        return account

    def _complete_spec(self, request: Tree) -> None:
        spec: Tree = request.get("spec") or {}
        request["spec"] = spec
        spec["audiences"] = spec.get("audiences") or list(self._audiences)
        default(request)
        expires_s: int = spec["expirationSeconds"]
        for error in TOKEN_SECONDS(expires_s, "spec.expirationSeconds"):
            raise _invalid("", error)

    def _bound(self, namespace: str, name: str, reference: Tree) -> Tree:
        """The claims about the object that the token is bound to. Raises ApiError."""
        kind, version = reference.get("kind", ""), reference.get("apiVersion", "")
        group, _, version = version.rpartition("/")
        if group or kind not in _BINDABLE:
            raise bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
        gvr, word = _BINDABLE[kind]
        wanted = reference.get("name", "")
        if not wanted:
            raise bad_request("Name parameter required.")
        stored = self._store.get(gvr, "" if kind == "Node" else namespace, wanted)
        if stored is None:
            raise not_found("", gvr.plural, wanted)
        found: Tree = stored.doc
        claims: Tree = {word: {"name": wanted, "uid": found["metadata"]["uid"]}}
        if kind == "Pod":
            if found["spec"].get("serviceAccountName", "") != name:
                raise bad_request(
                    f"cannot bind token for serviceaccount {quote(name)} to pod running with different "
                    "serviceaccount name."
                )
            if node := found["spec"].get("nodeName"):
                claims["node"] = self._node(node)
        uid = found["metadata"]["uid"]
        if reference.get("uid") and reference["uid"] != uid:
            why = (
                f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
                "The object might have been deleted and then recreated"
            )
            raise conflict("", kind, wanted, why)
        return claims

    def _node(self, name: str) -> Tree:
        stored = self._store.get(NODES, "", name)
        if stored is None:
            return {"name": name}
        node: Tree = stored.doc
        return {"name": name, "uid": node["metadata"]["uid"]}


def _invalid(name: str, error: FieldError) -> ApiError:
    return invalid_kind(_GROUP, _KIND, name, [error])
