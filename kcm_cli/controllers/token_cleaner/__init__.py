from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="token-cleaner-controller", alias="tokencleaner", client="token-cleaner", default_enabled=False
)
