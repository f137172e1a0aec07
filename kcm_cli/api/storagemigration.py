"""Views of the storagemigration.k8s.io group."""

from kcm_cli.api.resource import GVR, Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.meta import Object, View


class GroupResource(View, frozen=True, gc=False):
    group: str = ""
    resource: str = ""


class StorageVersionMigrationSpec(View, frozen=True, gc=False):
    resource: GroupResource = GroupResource()


class StorageVersionMigrationStatus(View, frozen=True, gc=False):
    """Conditions are documents, since those of other clients are copied whole."""

    conditions: tuple[Doc, ...] = ()
    resource_version: str = ""


class StorageVersionMigration(Object, frozen=True, gc=False, kw_only=True):
    spec: StorageVersionMigrationSpec = StorageVersionMigrationSpec()
    status: StorageVersionMigrationStatus = StorageVersionMigrationStatus()


STORAGE_VERSION_MIGRATIONS = Resource(
    GVR("storagemigration.k8s.io", "v1beta1", "storageversionmigrations"),
    "StorageVersionMigration",
    StorageVersionMigration,
    namespaced=False,
    keeps_raw=True,
)
