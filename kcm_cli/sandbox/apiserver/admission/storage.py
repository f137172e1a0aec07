"""Plugins about storage and default classes: DefaultStorageClass, DefaultIngressClass,
StorageObjectInUseProtection, PersistentVolumeClaimResize.

upstream: plugin/pkg/admission/{storage,network}
"""

from kcm_cli.api.resource import GVR
from kcm_cli.api.well_known import BETA_STORAGE_CLASS, INGRESS_CLASS, PVC_PROTECTION
from kcm_cli.machinery.quantity import Quantity, from_json
from kcm_cli.sandbox.apiserver.admission.denial import denied
from kcm_cli.sandbox.apiserver.admission.listers import Lister
from kcm_cli.sandbox.apiserver.store import Store
from kcm_cli.sandbox.apiserver.types import Attributes, Tree

STORAGE_CLASSES = GVR("storage.k8s.io", "v1", "storageclasses")
INGRESS_CLASSES = GVR("networking.k8s.io", "v1", "ingressclasses")
_DEFAULT_STORAGE = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)
_DEFAULT_INGRESS = ("ingressclass.kubernetes.io/is-default-class",)
PROTECTION = {
    ("", "persistentvolumeclaims"): PVC_PROTECTION,
    ("", "persistentvolumes"): "kubernetes.io/pv-protection",
    ("storage.k8s.io", "volumeattributesclasses"): "kubernetes.io/vac-protection",
}


class DefaultClasses:
    """Sets the default class of claims and Ingresses without a class, and validates resizes of claims."""

    def __init__(self, store: Store) -> None:
        self._storage = Lister(store, STORAGE_CLASSES)
        self._ingress = Lister(store, INGRESS_CLASSES)

    def admit_claim(self, attrs: Attributes) -> None:
        claim: Tree = attrs.obj or {}
        spec: Tree = claim["spec"]
        if spec.get("storageClassName") is not None or BETA_STORAGE_CLASS in _annotations(claim):
            return
        name = _youngest_default(self._storage, _DEFAULT_STORAGE)
        if name:
            spec["storageClassName"] = name

    def admit_ingress(self, attrs: Attributes) -> None:
        ingress: Tree = attrs.obj or {}
        spec: Tree = ingress.get("spec") or {}
        if spec.get("ingressClassName") is not None or INGRESS_CLASS in _annotations(ingress):
            return
        name = _youngest_default(self._ingress, _DEFAULT_INGRESS)
        if name:
            ingress["spec"] = {**spec, "ingressClassName": name}

    def validate_resize(self, attrs: Attributes) -> None:
        """A claim may be expanded if it is bound and its class allows it. Raises ApiError 403."""
        new: Tree = attrs.obj or {}
        old: Tree = attrs.old or {}
        if _size(new) <= _size(old):
            return
        if (old.get("status") or {}).get("phase") != "Bound":
            raise denied(attrs, "Only bound persistent volume claims can be expanded")
        name = _class_of(new)
        found = self._storage.get("", name) if name and name == _class_of(old) else None
        if found is None or not found.get("allowVolumeExpansion"):
            raise denied(
                attrs,
                "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc "
                "must support resize",
            )


def protect(attrs: Attributes) -> None:
    """StorageObjectInUseProtection: adds a finalizer to new claims, volumes and VolumeAttributesClasses."""
    gvr = attrs.resource.gvr
    finalizer = PROTECTION[gvr.group, gvr.plural]
    metadata: Tree = (attrs.obj or {})["metadata"]  # type: ignore[assignment]  # all objects have metadata
    finalizers: list[str] = metadata.get("finalizers") or []
    if finalizer not in finalizers:
        metadata["finalizers"] = [*finalizers, finalizer]


def _annotations(doc: Tree) -> dict[str, str]:
    return doc["metadata"].get("annotations") or {}


def _youngest_default(classes: Lister, annotations: tuple[str, ...]) -> str:
    """The name of the default class; of several the latest, then the first by name."""
    marked: list[tuple[str, str]] = []
    for stored in classes.of():
        doc: Tree = stored.doc
        if any(_annotations(doc).get(each) == "true" for each in annotations):
            marked.append((doc["metadata"].get("creationTimestamp", ""), stored.name))
    if not marked:
        return ""
    youngest = max(created for created, _ in marked)
    return min(name for created, name in marked if created == youngest)


def _size(claim: Tree) -> Quantity:
    return from_json(((claim["spec"].get("resources") or {}).get("requests") or {}).get("storage"))


def _class_of(claim: Tree) -> str:
    annotation = _annotations(claim).get(BETA_STORAGE_CLASS)
    return annotation if annotation is not None else claim["spec"].get("storageClassName") or ""
