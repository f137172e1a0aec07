"""ComponentStatus.

upstream: pkg/printers/internalversion/printers.go
"""

from datetime import datetime

from kcm_cli.sandbox.apiserver.kinds.kind import Kind
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, layout, name_of
from kcm_cli.sandbox.apiserver.types import Tree


def _cells(doc: Tree, now: datetime) -> list[object]:
    healthy: Tree = next((one for one in doc.get("conditions") or () if one["type"] == "Healthy"), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(healthy.get("status", ""), "Unknown")
    return [name_of(doc), state, healthy.get("message", ""), healthy.get("error", "")]


KIND = Kind(
    "",
    "componentstatuses",
    table=layout(
        NAME,
        *(Column(name, f"{name} of the component conditions") for name in ("Status", "Message", "Error")),
        row=_cells,
    ),
)
