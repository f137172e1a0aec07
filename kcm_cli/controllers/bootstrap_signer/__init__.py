from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="bootstrap-signer-controller", alias="bootstrapsigner", client="bootstrap-signer", default_enabled=False
)
