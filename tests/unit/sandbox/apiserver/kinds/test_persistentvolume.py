"""PersistentVolumes: refused values with their causes, as a v1.36 server answers."""

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

VOLUMES = Kind(
    "/api/v1/persistentvolumes",
    {"spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}},
)
REFUSED: list[Row] = [
    ("spec.capacity", None, ["Required value", 'Unsupported value: null: supported values: "storage"']),
    ("spec.hostPath", None, "spec: Required value: must specify a volume type"),
    ("spec.nfs", {"server": "s", "path": "/p"}, "Forbidden: may not specify more than 1 volume type"),
    (
        "spec+",
        {"hostPath": None, "local": {"path": "/l"}},
        ".nodeAffinity: Required value: Local volume requires node affinity",
    ),
]


async def test_table(api: Api) -> None:
    await VOLUMES.check(api, {}, REFUSED, [])
