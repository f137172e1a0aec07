from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="storageversion-garbage-collector-controller",
    alias="storage-version-gc",
    client="storage-version-garbage-collector",
    gates=("APIServerIdentity", "StorageVersionAPI"),
)
