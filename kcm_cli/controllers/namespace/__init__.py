from kcm_cli.controllers.namespace.config import NamespaceConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="namespace-controller", alias="namespace", options=NamespaceConfig, ends_jobs=True)
