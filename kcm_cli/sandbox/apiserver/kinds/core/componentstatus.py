"""ComponentStatus.

upstream: pkg/registry/core/componentstatus, pkg/printers/internalversion/printers.go
"""

import asyncio
from datetime import datetime

from kcm_cli.machinery import codec
from kcm_cli.rest.transport import Response
from kcm_cli.sandbox.apiserver.components import Components
from kcm_cli.sandbox.apiserver.errors import not_found, verb_not_supported
from kcm_cli.sandbox.apiserver.registry.call import Call
from kcm_cli.sandbox.apiserver.registry.core import Core, Kind
from kcm_cli.sandbox.apiserver.registry.options import list_options
from kcm_cli.sandbox.apiserver.registry.reading import chosen_by
from kcm_cli.sandbox.apiserver.store import Stored
from kcm_cli.sandbox.apiserver.store.stored import Recent
from kcm_cli.sandbox.apiserver.tables.column import NAME, Column, layout, name_of
from kcm_cli.sandbox.apiserver.types import Tree


async def _read(core: Core, call: Call) -> Response:
    """Get and list. No object is stored: each is made from the present health."""
    components = core.components
    if call.info.verb == "watch":
        raise verb_not_supported(call.resource, call.info.verb)
    if call.info.verb == "list":
        chosen = chosen_by(core, call, list_options(call.query))
        every = await asyncio.gather(*(_status(components, name) for name in components.names))
        return await call.media.list([each for each in every if chosen.matches(each)], "", "", None)
    if call.name not in components.names:
        raise not_found("", "componentstatus", call.name)
    return call.media.object(200, await _status(components, call.name))


async def _status(components: Components, name: str) -> Stored:
    wrong = await components.problem(name)
    condition = {"type": "Healthy", "status": "False" if wrong else "True", "message": wrong or "ok"}
    doc: Tree = {"kind": "ComponentStatus", "apiVersion": "v1", "metadata": {"name": name}}
    doc["conditions"] = [condition]
    return Stored("", name, 0, codec.encode(doc), Recent(1), doc)


def _cells(doc: Tree, now: datetime) -> list[object]:
    healthy: Tree = next((one for one in doc.get("conditions") or () if one["type"] == "Healthy"), {})
    state = {"True": "Healthy", "False": "Unhealthy"}.get(healthy.get("status", ""), "Unknown")
    return [name_of(doc), state, healthy.get("message", ""), healthy.get("error", "")]


KIND = Kind(
    "",
    "componentstatuses",
    handlers={"": _read},
    warning="v1 ComponentStatus is deprecated in v1.19+",
    table=layout(
        NAME,
        *(Column(name, f"{name} of the component conditions") for name in ("Status", "Message", "Error")),
        row=_cells,
    ),
)
