"""The current objects that volumes and variables of containers refer to.

upstream: pkg/kubelet/token/token_manager.go
"""

from collections.abc import Callable, Mapping

from kcm_cli.api.core import Service
from kcm_cli.api.resource import GVR
from kcm_cli.component.clock import Clock
from kcm_cli.machinery import codec
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.recent import Bounded
from kcm_cli.sandbox.apiserver.store import Store, Stored
from kcm_cli.sandbox.apiserver.types import ApiError, Tree
from kcm_cli.sandbox.nodes.environment import MASTER, of_service, of_services
from kcm_cli.sandbox.nodes.objects import decoded, texts
from kcm_cli.sandbox.nodes.volumes import UnknownContent
from kcm_cli.sandbox.views import SERVICES, SimulatedPod, TokenSource

Issue = Callable[[str, str, Doc], Doc]
"""Issues a token: takes the namespace and name of a service account and a TokenRequest, which it returns with its
status. Raises ApiError."""
_CONFIG_MAPS, _SECRETS, _NODES = GVR("", "v1", "configmaps"), GVR("", "v1", "secrets"), GVR("", "v1", "nodes")
_DEFAULT_S, _MOST_TOKENS = 3600, 1024
_RENEWED_AFTER = 0.8


class StoredObjects:
    """``volumes.Objects`` of a store. A token is replaced after four fifths of its lifetime."""

    def __init__(self, store: Store, clock: Clock, issue: Issue, at: int | None = None) -> None:
        """``at``: the objects at this revision, or since when their history is kept (None: now)."""
        self._store = store
        self._clock = clock
        self._issue = issue
        self._at = at
        self._tokens: Bounded[tuple[str, str, int], tuple[bytes, float]] = Bounded(_MOST_TOKENS)

    def at(self, revision: int) -> "StoredObjects":
        """The objects at a revision."""
        return StoredObjects(self._store, self._clock, self._issue, revision)

    def config_map(self, namespace: str, name: str, *, binary: bool = True) -> Mapping[str, bytes] | None:
        found = self._get(_CONFIG_MAPS, namespace, name)
        return (
            None if found is None else texts(found.get("data")) | (decoded(found.get("binaryData")) if binary else {})
        )

    def secret(self, namespace: str, name: str) -> Mapping[str, bytes] | None:
        found = self._get(_SECRETS, namespace, name)
        return None if found is None else decoded(found.get("data"))

    def allocatable(self, node: str) -> Mapping[str, str]:
        status: Tree = (self._get(_NODES, "", node) or {}).get("status") or {}
        return status.get("allocatable") or {}

    def services(self, namespace: str, *, links: bool) -> Mapping[str, str]:
        master = self._stored(SERVICES.gvr, *MASTER)
        found = [] if master is None else [master]
        if links:
            at = None if self._at is None else self._store.kept(SERVICES.gvr, self._at)
            found += self._store.list(SERVICES.gvr, namespace, at=at)
        return of_services(of_service(codec.decode(each.data, Service)) for each in found)

    def token(self, pod: SimulatedPod, source: TokenSource) -> bytes:
        lasts_s = source.expiration_seconds or _DEFAULT_S
        key, now = (pod.uid, source.audience, lasts_s), self._clock.monotonic()
        known = self._tokens.get(key)
        if known is not None and now < known[1]:
            return known[0]
        spec: Doc = {
            "audiences": [source.audience] if source.audience else [],
            "expirationSeconds": lasts_s,
            "boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid},
        }
        try:
            made: Tree = self._issue(pod.namespace, pod.spec.service_account_name or "default", {"spec": spec})
        except ApiError as error:
            raise UnknownContent from error
        token = str(made["status"]["token"]).encode()
        self._tokens[key] = token, now + _RENEWED_AFTER * lasts_s
        return token

    def _get(self, gvr: GVR, namespace: str, name: str) -> Tree | None:
        stored = self._stored(gvr, namespace, name)
        return None if stored is None else stored.doc

    def _stored(self, gvr: GVR, namespace: str, name: str) -> Stored | None:
        if self._at is None:
            return self._store.get(gvr, namespace, name)
        return self._store.get_at(gvr, namespace, name, self._store.kept(gvr, self._at))
