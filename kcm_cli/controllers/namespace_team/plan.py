"""Which namespaces get a label."""

from kcm_cli.api.core import NAMESPACES, Namespace
from kcm_cli.planning.actions import Patch, Plan, Stage

LABEL = "example.com/team"


def plan(namespace: Namespace, team: str) -> Plan:
    """One patch for a namespace that names no team."""
    if namespace.deleting or LABEL in namespace.labels:
        return ()
    return (Stage((Patch(NAMESPACES, "", namespace.name, {"metadata": {"labels": {LABEL: team}}}, reason="no team"),)),)
