"""What kcm has beside upstream: comparisons with upstream's records leave it out."""

from kcm_cli.component.options import flags_of
from kcm_cli.engine.descriptor import Descriptor
from kcm_cli.machinery import codec
from kcm_cli.manager.controller_map import CONTROLLERS
from tests.kit.places import REFERENCE

FLAGS = {"config", "tracing-config-file", "warm-standby", "write-config-to", "install-completion", "show-completion"}
"""Flags that upstream lacks, but for those of whole controllers. Each is in docs/deviations.md."""


def own_controllers() -> list[Descriptor]:
    """The controllers that upstream lacks."""
    names = {
        one["name"] for one in codec.decode((REFERENCE / "controllers.json").read_bytes(), list[dict[str, object]])
    }
    return [one for one in CONTROLLERS if one.name not in names]


def own_flags() -> set[str]:
    """The flags that upstream lacks."""
    groups = (one.options for one in own_controllers() if one.options is not None)
    return FLAGS.union(flag.name for group in groups for flag in flags_of(group))
