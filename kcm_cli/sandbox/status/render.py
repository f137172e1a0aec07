"""Renders the status view for rich. Pure."""

import shlex

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from kcm_cli.sandbox.status.snapshot import Controllers, EventLine, NodeCounts, Queue, Snapshot

HEIGHT = 24
_HEAD, _TITLE = 6, 1
_NAMED = 3
"""The maximum number of nodes that are not ready whose names are shown."""
_STYLES = {"Running": "green", "Pending": "yellow", "Failed": "red", "Unknown": "red"}


def render(snapshot: Snapshot, height: int = HEIGHT) -> RenderableType:
    """A view of at most ``height`` lines: the cluster, and in the rest the controllers' queues and the last Events."""
    parts: list[RenderableType] = [_cluster(snapshot)]
    left = height - _HEAD
    if snapshot.controllers is not None and left > _TITLE:
        rows = max(1, left // 2 - _TITLE) if snapshot.events else left - _TITLE
        queues = _worth_showing(snapshot.controllers.queues)[:rows]
        parts.append(_queues(snapshot.controllers, queues))
        left -= _TITLE + len(queues)
    if snapshot.events and left > _TITLE:
        parts.append(_events(snapshot.events[_TITLE - left :]))
    return Group(*parts)


def _cluster(snapshot: Snapshot) -> Panel:
    lines = Table.grid(padding=(0, 2))
    lines.add_column(style="dim", no_wrap=True, min_width=10)
    lines.add_column(no_wrap=True, overflow="ellipsis", ratio=1)
    lines.add_row("API server", Text(snapshot.url))
    lines.add_row("In a shell", Text(f"export KUBECONFIG={shlex.quote(snapshot.kubeconfig)}"))
    lines.add_row("Nodes", _nodes(snapshot.nodes))
    lines.add_row("Pods", _pods(snapshot.pods))
    return Panel(
        lines,
        title="kcm sandbox",
        title_align="left",
        subtitle="Ctrl-C ends it",
        subtitle_align="right",
        border_style="dim",
    )


def _nodes(nodes: NodeCounts) -> Text:
    text = Text(f"{nodes.ready:,} ready", style="green" if nodes.ready else "")
    if nodes.not_ready:
        named = ", ".join(nodes.not_ready[:_NAMED]) + (", …" if len(nodes.not_ready) > _NAMED else "")
        text.append(f", {len(nodes.not_ready):,} not ready ({named})", style="red")
    return text


def _pods(pods: tuple[tuple[str, int], ...]) -> Text:
    counts = [Text(f"{count:,} {status}", style=_STYLES.get(status, "")) for status, count in pods]
    return Text(", ").join(counts) if counts else Text("none")


def _worth_showing(queues: tuple[Queue, ...]) -> list[Queue]:
    """The queues that have had work: those with most keys first, then those with most keys done."""
    used = [queue for queue in queues if queue.busy or queue.done]
    return sorted(used, key=lambda queue: (-queue.busy, -queue.done, queue.name))


def _queues(controllers: Controllers, shown: list[Queue]) -> Table:
    table = _table(expand=False)
    busy = sum(queue.busy > 0 for queue in controllers.queues)
    title = f"{controllers.running} controllers run, {busy} queue{'' if busy == 1 else 's'} with work"
    table.add_column(_line(title))
    for title in ("waiting", "in work", "done", "retries"):
        table.add_column(title, justify="right", no_wrap=True, min_width=7)
    for queue in shown:
        figures = (queue.waiting, queue.in_work, queue.done, queue.retries)
        table.add_row(_line(queue.name), *(f"{figure:,}" for figure in figures), style="bold" if queue.busy else "")
    return table


def _events(events: tuple[EventLine, ...]) -> Table:
    table = _table()
    table.add_column("Events", no_wrap=True, style="dim", min_width=8)
    if several := any(event.count > 1 for event in events):
        table.add_column("", no_wrap=True, style="dim", justify="right")
    table.add_column("", max_width=34)
    table.add_column("", max_width=22)
    table.add_column("", no_wrap=True, overflow="ellipsis", ratio=1)
    for event in events:
        about = f"{event.namespace}/{event.about}" if event.namespace not in ("", "default") else event.about
        style = "yellow" if event.type == "Warning" else ""
        count = [f"{event.count:,}×" if event.count > 1 else ""] if several else []
        table.add_row(event.time, *count, _line(about), _line(event.reason, style), Text(event.message))
    return table


def _line(text: str, style: str = "") -> Text:
    """Text that is cut in narrow terminals, before figures and times are."""
    return Text(text, style, no_wrap=True, overflow="ellipsis")


def _table(*, expand: bool = True) -> Table:
    return Table(box=None, expand=expand, padding=(0, 1), pad_edge=True, header_style="dim")
