from kcm_cli.controllers.namespace_team.config import NamespaceTeamConfig
from kcm_cli.engine.descriptor import Descriptor

DESCRIPTOR = Descriptor(name="namespace-team-controller", options=NamespaceTeamConfig, default_enabled=False)
