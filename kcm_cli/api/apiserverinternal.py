"""Views of the internal.apiserver.k8s.io group: the versions in which API servers store objects."""

from kcm_cli.api.core import Condition
from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View


class StorageVersionStatus(View, frozen=True, gc=False):
    """storage_versions: one document for each API server, copied whole."""

    storage_versions: tuple[Doc, ...] = ()
    common_encoding_version: str | None = None
    conditions: tuple[Condition, ...] = ()


class StorageVersion(Object, frozen=True, gc=False, kw_only=True):
    status: StorageVersionStatus = StorageVersionStatus()


STORAGE_VERSIONS = Resource(
    GVR("internal.apiserver.k8s.io", "v1alpha1", "storageversions"),
    "StorageVersion",
    StorageVersion,
    namespaced=False,
    keeps_raw=True,
)
