"""Renders the state of a sandbox for rich: its cluster, the workloads that are not ready and why, and Events. Pure."""

import shlex
from collections.abc import Sequence

from rich.cells import chop_cells
from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kcm_cli.machinery.quoting import escaped
from kcm_cli.sandbox.status.state import EventLine, NodeCounts, SandboxState, Workload

_HEAD = 6
"""Lines of the panel."""
_NAMED = 3
"""The maximum number of nodes that are not ready whose names are shown."""
_STYLES = {"Running": "green", "Pending": "yellow", "Failed": "red", "Unknown": "red"}
_NARROW = 60


def head(snapshot: SandboxState, width: int) -> tuple[RenderableType, int]:
    """Where the cluster is, and how it is; and the number of lines. The command is outside of the panel, so that it can
    be copied where it takes more than a line."""
    command = f"export KUBECONFIG={shlex.quote(snapshot.kubeconfig)}"
    folded = [Text(line, "bold", no_wrap=True) for line in chop_cells(command, width)]
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True, min_width=10)
    lines.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    lines.add_row("API server", Text(snapshot.url))
    lines.add_row("Nodes", _nodes(snapshot.nodes))
    lines.add_row("Pods", _pods(snapshot.pods))
    lines.add_row("Workloads", _workloads(snapshot.workloads))
    panel = Panel(
        lines,
        title="kcm sandbox",
        title_align="left",
        subtitle="Ctrl-C ends it",
        subtitle_align="right",
        border_style="dim",
    )
    return Group(panel, *folded), _HEAD + len(folded)


def _nodes(nodes: NodeCounts) -> Text:
    text = Text(f"{nodes.ready:,} ready", style="green" if nodes.ready else "")
    if nodes.not_ready:
        named = ", ".join(nodes.not_ready[:_NAMED]) + (", …" if len(nodes.not_ready) > _NAMED else "")
        text.append(f", {len(nodes.not_ready):,} not ready ({named})", style="red")
    return text


def _pods(pods: tuple[tuple[str, int], ...]) -> Text:
    counts = [Text(f"{count:,} {status}", style=_STYLES.get(status, "")) for status, count in pods]
    return Text(", ").join(counts) if counts else Text("none")


def _workloads(unready: Sequence[Workload]) -> Text:
    if not unready:
        return Text("none is waiting")
    return Text(f"{len(unready):,} not ready", style="red" if any(one.why for one in unready) else "yellow")


def workloads(unready: Sequence[Workload], width: int) -> RenderableType:
    """A line of headings, and one for each workload: its name, ready and wanted pods, and what keeps it."""
    table = _table()
    table.add_column(line("not ready"), no_wrap=True, overflow="ellipsis", max_width=max(10, width * 2 // 5))
    table.add_column(Text("ready"), justify="right", no_wrap=True, min_width=5)
    table.add_column(line("why"), no_wrap=True, overflow="ellipsis", ratio=1)
    for one in unready:
        name = f"{one.kind.lower()}/{one.name}" if width >= _NARROW else one.name
        place = name if one.namespace == "default" else f"{one.namespace}/{name}"
        why = line(one.why, "red") if one.why else line("its pods start", "dim")
        table.add_row(line(place), f"{one.ready:,}/{one.wanted:,}", why)
    return table


def events(shown: Sequence[EventLine], width: int) -> RenderableType:
    """A line of headings, and one for each. In narrow terminals the reason and the object are all that fits."""
    table = _table()
    table.add_column("Events", no_wrap=True, style="dim", min_width=8)
    if width < _NARROW:
        table.add_column("", max_width=14)
        table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
        for event in shown:
            table.add_row(event.time, line(event.reason, _style(event)), line(_about(event)))
        return table
    if several := any(event.count > 1 for event in shown):
        table.add_column("", no_wrap=True, style="dim", justify="right")
    table.add_column("", max_width=34)
    table.add_column("", max_width=22)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for event in shown:
        count = [f"{event.count:,}×" if event.count > 1 else ""] if several else []
        reason = line(event.reason, _style(event))
        table.add_row(event.time, *count, line(_about(event)), reason, line(event.message))
    return table


def _about(event: EventLine) -> str:
    return f"{event.namespace}/{event.about}" if event.namespace not in ("", "default") else event.about


def _style(event: EventLine) -> str:
    return "yellow" if event.type == "Warning" else ""


def line(text: str, style: str = "") -> Text:
    """Text that is cut in narrow terminals, before figures and times are."""
    return Text(escaped(text), style, no_wrap=True, overflow="ellipsis")


def _table() -> Table:
    return Table(box=None, expand=True, padding=(0, 1), pad_edge=True, header_style="dim")
