"""Which kind has which table."""

from kcm_cli.sandbox.apiserver.registry.catalog import Served
from kcm_cli.sandbox.apiserver.tables import cluster, core, pods, storage, workloads
from kcm_cli.sandbox.apiserver.tables.cluster import PLAIN
from kcm_cli.sandbox.apiserver.tables.column import Layout

LAYOUTS: dict[str, Layout] = {
    "pods": pods.LAYOUT,
    **workloads.LAYOUTS,
    **core.LAYOUTS,
    **storage.LAYOUTS,
    **cluster.LAYOUTS,
}


def layout_for(served: Served, subresource: str = "") -> Layout:
    """The table of a resource or of its scale."""
    if subresource == "scale":
        return workloads.CUSTOM_SCALE if served.info.custom else workloads.SCALE
    if served.table is not None:
        return served.table
    return LAYOUTS.get(served.info.group_resource, PLAIN)
