from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="storage-version-migrator-controller", alias="svm", gates=("StorageVersionMigrator", "InformerResourceVersion")
)
