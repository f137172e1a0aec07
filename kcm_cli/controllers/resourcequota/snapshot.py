"""What the quota controller reads: a quota, and the objects of its namespace by group and plural."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kcm_cli.api.core import ResourceQuota
from kcm_cli.planning.pod_totals import Tree

GroupResource = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """``measured``: documents of the kinds that are measured; ``counted``: how many there are of the others."""

    quota: ResourceQuota
    measured: Mapping[GroupResource, Sequence[Tree]]
    counted: Mapping[GroupResource, int]
