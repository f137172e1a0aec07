"""NamespaceLifecycle: rejects creations in missing and in terminating namespaces, and deletions of three.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle
"""

from kcm_cli.api.resource import GVR
from kcm_cli.machinery.codec import Doc
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.errors import not_found
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

NAMESPACES = GVR("", "v1", "namespaces")
IMMORTAL = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """See the module."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def admit(self, attrs: Attributes) -> None:
        """Check a write. Raises ApiError 403, 404."""
        gvr = attrs.resource.gvr
        if gvr.plural == "namespaces" and not gvr.group:
            if attrs.operation == "DELETE" and attrs.name in IMMORTAL:
                raise denied(attrs, "this namespace may not be deleted")
            return
        namespace = attrs.namespace
        # upstream lets updates pass since 1.37: kubernetes#140661
        if not namespace or attrs.operation != "CREATE" or gvr.plural == "localsubjectaccessreviews":
            return
        stored = self._store.get(NAMESPACES, "", namespace)
        if stored is None:
            raise not_found("", "namespaces", namespace)
        if not _terminating(stored.doc):
            return
        cause: Doc = {
            "reason": "NamespaceTerminating",
            "message": f"namespace {namespace} is being terminated",
            "field": "metadata.namespace",
        }
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise denied(attrs, why, [cause])


def _terminating(namespace: Tree) -> bool:
    return (namespace.get("status") or {}).get("phase") == "Terminating"
