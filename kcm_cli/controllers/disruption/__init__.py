"""disruption-controller: see ``controller``."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(
    name="disruption-controller",
    alias="disruption",
    client="disruption-controller",
    source="controllermanager",
)
