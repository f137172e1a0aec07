"""Renders a manager for rich, at any width. Pure."""

from collections.abc import Callable, Mapping, Sequence

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from kcm_cli.sandbox.status.state import SandboxState
from kcm_cli.top import cluster
from kcm_cli.top.figures import Row, View
from kcm_cli.top.source import Held

HELP = "h help  q quit  s sort  r reverse  / filter  a all queues  p pause"
_WRITES = ("create", "update", "patch", "delete")
_HEAD = 5
"""Lines above the rows, and the one below."""
_PLUMBING = 3
"""Lines above the rows of a sandbox's manager, which shows no lease."""


class Look(msgspec.Struct):
    """How the user wants it. ``every``: also queues that have had no work. ``typing``: the filter is being typed."""

    sort: str = "rate"
    reverse: bool = False
    filter: str = ""
    every: bool = False
    paused: bool = False
    help: bool = False
    typing: bool = False
    problem: str = ""


class Column(msgspec.Struct, frozen=True):
    """A column: shown in terminals of at least ``least`` columns. ``value``: what rows are sorted by."""

    name: str
    title: str
    least: int
    about: str
    value: Callable[[Row], float]
    text: Callable[[Row], str]


def _count(number: float) -> str:
    return f"{number:,.0f}"


def _per_second(number: float) -> str:
    return "" if number == 0 else f"{number:,.0f}" if number >= 10 else f"{number:.1f}"


def seconds(number: float | None) -> str:
    """A short duration; empty for none and zero."""
    if not number:
        return ""
    if number < 0.001:
        return "<1ms"
    if number < 1:
        return f"{number * 1000:.0f}ms"
    if number < 120:
        return f"{number:.1f}s"
    return f"{number / 60:.0f}m" if number < 7200 else f"{number / 3600:.0f}h"


def _writes(row: Row) -> float:
    return sum((row.writes or {}).values())


COLUMNS = (
    Column("waiting", "waiting", 0, "keys that wait", lambda row: row.waiting, lambda row: _count(row.waiting)),
    Column("rate", "keys/s", 0, "keys synced per second", lambda row: row.rate, lambda row: _per_second(row.rate)),
    Column(
        "retries",
        "retries/s",
        52,
        "keys queued again per second, most after an error",
        lambda row: row.retries,
        lambda row: _per_second(row.retries),
    ),
    Column(
        "oldest",
        "oldest",
        64,
        "how long the oldest key has been in work",
        lambda row: row.oldest_s,
        lambda row: seconds(row.oldest_s),
    ),
    Column(
        "wait",
        "wait",
        74,
        "mean time from queue to work",
        lambda row: row.wait_s or 0.0,
        lambda row: seconds(row.wait_s),
    ),
    Column(
        "busy",
        "busy",
        84,
        "share of the time in which a worker was busy",
        lambda row: row.work_share,
        lambda row: f"{row.work_share:.0%}" if row.work_share >= 0.005 else "",
    ),
    Column("done", "done", 96, "keys synced since the start", lambda row: row.done, lambda row: _count(row.done)),
    Column("writes", "writes/s", 108, "writes of its controller", _writes, lambda row: _per_second(_writes(row))),
    Column(
        "turn",
        "longest turn",
        124,
        "longest time for which its controller held the event loop",
        lambda row: row.longest_s or 0.0,
        lambda row: seconds(row.longest_s),
    ),
)
SORTS = (*(column.name for column in COLUMNS), "name")


def chosen(rows: Sequence[Row], look: Look) -> list[Row]:
    """The rows that are shown, in their order. Figures are sorted from high to low, names from A to Z."""
    found = [row for row in rows if look.every or row.done or row.waiting]
    if look.filter:
        found = [row for row in found if look.filter in row.queue or look.filter in row.controller]
    found.sort(key=lambda row: row.queue)
    if look.sort == "name":
        return found[::-1] if look.reverse else found
    value = next(column.value for column in COLUMNS if column.name == look.sort)
    found.sort(key=value, reverse=not look.reverse)
    return found


class Shown(msgspec.Struct, frozen=True):
    """What is shown of a manager: a view, its lease, and the lines of failed health checks. running: the number of its
    controllers, if it is known."""

    view: View
    held: Held | None
    unhealthy: tuple[str, ...]
    running: int | None = None


def printed(shown: Shown, look: Look, width: int) -> RenderableType:
    """The picture with all rows, for a print of this width."""
    return Group(_summary(shown, width), _rows(chosen(shown.view.rows, look), look, width))


def render(shown: Shown, look: Look, width: int, height: int) -> RenderableType:
    """The picture for a terminal of this size."""
    if look.help:
        return Group(_summary(shown, width), _help())
    rows = chosen(shown.view.rows, look)
    fitting = rows[: max(1, height - _HEAD - bool(shown.unhealthy))]
    below = cluster.line(_below(len(rows) - len(fitting), look), "dim")
    return Group(_summary(shown, width), _rows(fitting, look, width), below)


def sandbox(snapshot: SandboxState, manager: Shown | None, width: int, height: int) -> RenderableType:
    """The picture of a sandbox: the cluster, the workloads that are not ready and why; then the manager, and in the
    rest the last Events."""
    head, lines = cluster.head(snapshot, width)
    parts, left = [head], height - lines
    if snapshot.workloads and left > 1:
        listed = snapshot.workloads[: max(1, min(left - 1, left // 3))]
        parts.append(cluster.workloads(listed, width))
        left -= 1 + len(listed)
    if manager is not None and left > _PLUMBING:
        room = left // 2 if snapshot.events else left
        rows = _busiest(manager.view.rows)[: max(1, room - _PLUMBING)]
        parts += [_summary(manager, width), _rows(rows, Look(), width)]
        left -= _PLUMBING + len(rows)
    if snapshot.events and left > 1:
        parts.append(cluster.events(snapshot.events[1 - left :], width))
    return Group(*parts)


def _busiest(rows: Sequence[Row]) -> list[Row]:
    """Queues that have had work: those with keys that wait first, then those that are busy or have been."""
    used = [row for row in rows if row.done or row.waiting]
    return sorted(used, key=lambda row: (-row.waiting, -row.rate, -row.done, row.queue))


def _summary(shown: Shown, width: int) -> RenderableType:
    view, held, unhealthy = shown.view, shown.held, shown.unhealthy
    role = {True: "leads", False: "stands by", None: "no election"}[view.leads]
    up = "" if view.uptime_s is None else f", up {seconds(view.uptime_s)}"
    up += "" if shown.running is None else f", {shown.running} controllers run"
    cpu = f"{view.cpu:.2f} cores, {view.memory / 2**20:,.0f} MiB"
    first = cluster.line(f"{view.version or 'manager'} {role}{up}", "bold")
    verbs = ", ".join(f"{_per_second(view.writes.get(verb, 0)) or '0'} {verb}" for verb in _WRITES)
    second = f"{cpu}; {view.requests:.1f} requests/s"
    second += f" ({verbs})" if width >= 90 else ""
    second += f", {view.errors:.1f} errors/s" if view.errors else ""
    lines: list[RenderableType] = [first, cluster.line(second)]
    if held is not None:
        ago = f"renewed {seconds(held.renewed_s) or '0s'} ago" if held.renewed_s is not None else "held"
        text = held.problem or (f"{ago} by {held.holder}" if held.holder else "not held")
        lines.append(cluster.line(f"lease {text} ({held.name})", "yellow" if held.problem or not held.holder else ""))
    if unhealthy:
        lines.append(cluster.line(f"unhealthy: {', '.join(line.removeprefix('[-]') for line in unhealthy)}", "red"))
    return Group(*lines)


def _rows(rows: Sequence[Row], look: Look, width: int) -> Table:
    columns = [column for column in COLUMNS if column.least <= width]
    table = Table(box=None, expand=False, padding=(0, 1, 0, 0), pad_edge=False, header_style="dim")
    table.add_column(_title("queue", "name", look))
    if width >= 150:
        table.add_column(cluster.line("controller"))
    for column in columns:
        table.add_column(_title(column.title, column.name, look), justify="right", no_wrap=True)
    for row in rows:
        controller = [cluster.line(row.controller, "dim")] if width >= 150 else []
        style = "yellow" if row.retries else "bold" if row.waiting or row.rate else ""
        table.add_row(cluster.line(row.queue), *controller, *(column.text(row) for column in columns), style=style)
    return table


def _title(text: str, name: str, look: Look) -> Text:
    marked = name == look.sort
    arrow = ("▲" if look.reverse != (name == "name") else "▼") if marked else ""
    return cluster.line(f"{text}{arrow}", "bold" if marked else "")


def _below(hidden: int, look: Look) -> str:
    if look.typing:
        return f"filter: {look.filter}▏ (Enter keeps it, Esc clears it)"
    notes = [look.problem] if look.problem else []
    notes += ["PAUSED"] if look.paused else []
    notes += [f"filter {look.filter}"] if look.filter else []
    notes += [f"{hidden} more"] if hidden > 0 else []
    return "  ".join((*notes, HELP))


def _help() -> Table:
    table = Table.grid(padding=(0, 2))
    for column in COLUMNS:
        table.add_row(cluster.line(column.title, "bold"), Text(column.about))
    table.add_row(Text(), Text())
    table.add_row(cluster.line("keys", "bold"), Text(HELP))
    return table


def document(shown: Shown, look: Look) -> Mapping[str, object]:
    """The same as a document, for ``-o json``."""
    rows = [msgspec.to_builtins(row) for row in chosen(shown.view.rows, look)]
    held = None if shown.held is None else msgspec.to_builtins(shown.held)
    return {**msgspec.to_builtins(shown.view), "rows": rows, "lease": held, "unhealthy": list(shown.unhealthy)}
