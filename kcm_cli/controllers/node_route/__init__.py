"""node-route-controller: only cloud controller managers run it."""

from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="node-route-controller", alias="route", cloud_only=True)
