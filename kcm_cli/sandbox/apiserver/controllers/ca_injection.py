"""Injects CA certificates into webhook configurations and CustomResourceDefinitions, as envtest and cert-manager do.

Webhooks without a certificate whose Service has a route get the cluster's CA, which signs the certificates of
``webhook_certificates``. cert-manager's annotations have the same effect as with its cainjector, so that both may run.
If a Certificate has no Secret, because it was not issued, the cluster's CA is injected.

upstream: controller-runtime pkg/envtest/webhook.go, cert-manager pkg/controller/cainjector
"""

from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import partial

from kcm_cli.api.resource import GVR
from kcm_cli.machinery import pem
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.sandbox.apiserver.registry.core import Core
from kcm_cli.sandbox.apiserver.store import Event
from kcm_cli.sandbox.apiserver.store.next_tick import NextTick
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.webhooks.routes import annotated
from kcm_cli.sandbox.apiserver.webhooks.targets import routed

_MANAGER = "kcm-sandbox"
_REGISTRATION = "admissionregistration.k8s.io"
_INTO = (
    GVR(_REGISTRATION, "v1", "mutatingwebhookconfigurations"),
    GVR(_REGISTRATION, "v1", "validatingwebhookconfigurations"),
    GVR("apiextensions.k8s.io", "v1", "customresourcedefinitions"),
)
_SERVICES, _SECRETS = GVR("", "v1", "services"), GVR("", "v1", "secrets")
_CERT_MANAGER = "cert-manager.io"
_FROM_CERTIFICATE = f"{_CERT_MANAGER}/inject-ca-from"
_FROM_SECRET = f"{_CERT_MANAGER}/inject-ca-from-secret"
_FROM_SERVER = f"{_CERT_MANAGER}/inject-apiserver-ca"
_ALLOWED = f"{_CERT_MANAGER}/allow-direct-injection"
_CERTIFICATE = f"{_CERT_MANAGER}/certificate-name"


class CaInjection:
    """See the module. ``ca``: the cluster's CA certificate, PEM."""

    def __init__(self, core: Core, ca: bytes) -> None:
        self._core = core
        self._ca = b64encode(ca).decode()
        self._next_tick = NextTick(self._settle)
        self._known: set[tuple[GVR, str]] = set()
        """Objects with a webhook."""
        self._due: set[tuple[GVR, str]] = set()
        self._issued: dict[str, dict[str, list[Tree]]] = {}
        """The Secrets of Certificates by namespace and Certificate, as they are in this turn."""
        for gvr in _INTO:
            for stored in core.store.list(gvr):
                self._note(gvr, stored.name, stored.doc)
            core.store.subscribe(gvr, partial(self._written, gvr))
        core.store.subscribe(_SERVICES, self._service_written)
        core.store.subscribe(_SECRETS, self._secret_written)
        core.routes.changed.append(self._settle_all)
        self._settle_all()

    def _note(self, gvr: GVR, name: str, doc: Tree) -> bool:
        """Record whether an object has a webhook, and return it."""
        if not any(_clients(doc)):
            self._known.discard((gvr, name))
            return False
        self._known.add((gvr, name))
        return True

    def _written(self, gvr: GVR, event: Event) -> None:
        if event.type == "DELETED":
            self._known.discard((gvr, event.stored.name))
        elif self._note(gvr, event.stored.name, event.stored.doc):
            self._due.add((gvr, event.stored.name))
            self._next_tick.ask(event)

    def _service_written(self, event: Event) -> None:
        if self._known and annotated(event.stored.doc) is not None:
            self._due |= self._known
            self._next_tick.ask(event)

    def _secret_written(self, event: Event) -> None:
        if self._known and not _annotations(event.stored.doc).keys().isdisjoint((_ALLOWED, _CERTIFICATE)):
            self._due |= self._known
            self._next_tick.ask(event)

    def _settle_all(self) -> None:
        self._due |= self._known
        self._settle()

    def _settle(self) -> None:
        # atomic: no await
        due, self._due = self._due, set()
        self._issued.clear()
        for gvr, name in sorted(due, key=str):
            current = self._core.store.get(gvr, "", name)
            if current is None:
                continue
            wanted = self._bundles(current.doc)
            if any(bundle is not None for bundle in wanted):
                new: Tree = current.copy()
                for client, bundle in zip(_clients(new), wanted, strict=True):
                    if bundle is not None:
                        client["caBundle"] = bundle
                self._core.own.update(gvr, current, new, _MANAGER)
        self._issued.clear()

    def _bundles(self, doc: Tree) -> list[str | None]:
        """The new ``caBundle`` of each ``clientConfig``; None for no change."""
        asked, replaces = self._asked_for(doc)
        return [self._bundle(client, asked, replaces=replaces) for client in _clients(doc)]

    def _bundle(self, client: Tree, asked: str, *, replaces: bool) -> str | None:
        known = client.get("caBundle") or ""
        if not replaces and _has_certificate(known):
            return None
        wanted = asked or (self._ca if routed(client, self._core.store, self._core.routes) else known)
        return wanted if wanted != known else None

    def _asked_for(self, doc: Tree) -> tuple[str, bool]:
        """The bundle by the annotations, if any, and whether it replaces an existing one."""
        annotations = _annotations(doc)
        namespace, _, name = annotations.get(_FROM_CERTIFICATE, "").partition("/")
        if name:
            found = _bundle_of(self._of_certificate(namespace, name) if namespace else ())
            return (found, True) if found else (self._ca, False)
        namespace, _, name = annotations.get(_FROM_SECRET, "").partition("/")
        if name:
            stored = self._core.store.get(_SECRETS, namespace, name)
            allowed = stored is not None and _annotations(stored.doc).get(_ALLOWED) == "true"
            found = _bundle_of([stored.doc] if stored is not None and allowed else ())
            return found, bool(found)
        return (self._ca, True) if annotations.get(_FROM_SERVER) == "true" else ("", False)

    def _of_certificate(self, namespace: str, certificate: str) -> list[Tree]:
        """The Secrets of a Certificate."""
        known = self._issued.get(namespace)
        if known is None:
            known = self._issued[namespace] = {}
            for stored in self._core.store.scan(_SECRETS, namespace):
                if name := _annotations(stored.doc).get(_CERTIFICATE):
                    known.setdefault(name, []).append(stored.doc)
        return known.get(certificate, [])


def _bundle_of(secrets: Iterable[Tree]) -> str:
    """The first CA in these Secrets, or empty."""
    found = (str((secret.get("data") or {}).get("ca.crt") or "") for secret in secrets)
    return next(filter(_has_certificate, found), "")


def _clients(doc: Tree) -> Iterator[Tree]:
    """Each ``clientConfig`` of a webhook configuration or CustomResourceDefinition."""
    conversion: Tree = (doc.get("spec") or {}).get("conversion") or {}
    for webhook in (*(doc.get("webhooks") or ()), conversion.get("webhook") or {}):
        client: Tree | None = webhook.get("clientConfig")
        if client is not None:
            yield client


def _annotations(doc: Tree) -> Tree:
    found: Tree = doc["metadata"].get("annotations") or {}
    return found


def _has_certificate(bundle: str) -> bool:
    """False for an empty bundle and for the placeholders in manifests, such as an empty line."""
    return any(pem.certificates(decoded_base64(bundle)))
