"""The answer of ``kcm plan --compare`` as text: the verdict, what was planned, and what was not."""

from collections.abc import Iterator

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from kcm_cli.cli.plan_text import first_lines, section
from kcm_cli.machinery import codec
from kcm_cli.plan.comparison import Comparison, Unexpected
from kcm_cli.plan.formatting import span
from kcm_cli.plan.ready import Ready
from kcm_cli.plan.steps import DIFFERENTLY, HAPPENED, NOT_YET, UNKNOWN, Step

_WORDS = {HAPPENED: "happened", NOT_YET: "not yet", DIFFERENTLY: "differently", UNKNOWN: "unknown"}
_STYLES = {HAPPENED: "green", NOT_YET: "yellow", DIFFERENTLY: "red", UNKNOWN: "dim"}
_ORDER = (DIFFERENTLY, NOT_YET, UNKNOWN, HAPPENED)
_FIELDS = 8


def headline(found: Comparison) -> str:
    """The first line: what is compared."""
    begun = f"begun at {found.begun_at}, {span(found.elapsed_s)} before" if found.begun_at else "not begun"
    return f"Plan of {found.planned_at} beside the cluster at {found.read_at} ({begun})"


def verdict(found: Comparison) -> str:
    """The answer in one line."""
    all_, unknown = len(found.steps), found.count(UNKNOWN)
    known = all_ - unknown
    parts = [
        _counted(found.count(DIFFERENTLY), "happened differently", "happened differently"),
        _counted(found.low, "has fewer ready than planned", "have fewer ready than planned"),
        _counted(len(found.unexpected), "change was not planned", "changes were not planned"),
    ]
    if found.late:
        parts.append(_counted(found.count(NOT_YET), "did not happen in time", "did not happen in time"))
    wrong = ", ".join(part for part in parts if part)
    rest = f"; {unknown} unknown" if unknown else ""
    done = f"{found.count(HAPPENED)} of {known} planned differences are there{rest}"
    if wrong:
        return f"Not as planned: {wrong} ({done})"
    if not found.steps:
        return "As planned: nothing was to end differently, and nothing has"
    if not found.begun_at and not found.complete:
        return f"Nothing of the plan has begun ({done})"
    return f"As planned: {done}" if found.complete else f"As planned so far: {done}"


def _counted(count: int, one: str, several: str) -> str:
    return f"{count} {one if count == 1 else several}" if count else ""


def show(found: Comparison, console: Console) -> None:
    """Print it."""
    console.print(Group(*_parts(found)))


def _parts(found: Comparison) -> Iterator[RenderableType]:
    yield Text(headline(found), style="bold")
    yield from first_lines([Text(line) for line in found.changes])
    yield Text("")
    good = "green" if found.complete else "yellow"
    yield Text(verdict(found), style=f"bold {good if found.as_planned else 'red'}")
    steps = sorted(found.steps, key=lambda one: _ORDER.index(one.state))
    yield from section("Planned", [_step(one) for one in steps])
    yield from section("Not planned", [_unexpected(one) for one in found.unexpected])
    yield from _availability(found.availability)
    yield from section("Notes", [Text(line, style="dim") for line in found.notes])


def _step(one: Step) -> Text:
    name = str(one.about) if one.about.name else f"{one.count} {one.about.kind} of {one.owner or one.about.namespace}"
    why = f": {one.detail}" if one.detail else ""
    line = Text(f"{_WORDS[one.state]:11} ", style=_STYLES[one.state]).append(
        f"{one.action} {name}{why}", style="default"
    )
    if one.state in (DIFFERENTLY, NOT_YET):
        for field in [field for field in one.fields if field.state == one.state][:_FIELDS]:
            values = (codec.as_text(value) for value in (field.before, field.planned, field.found))
            line.append("\n{:11}   {}: was {}, planned {}, is {}".format("", field.path, *values), style="default")
    return line


def _unexpected(one: Unexpected) -> Text:
    more = f" and {one.count - 1} more of {one.owner}" if one.count > 1 else ""
    by = f" by {one.by}" if one.by else ""
    return Text(f"{one.what:11} {one.about}{more}{by} at {one.at}")


def _availability(ready: tuple[Ready, ...]) -> Iterator[RenderableType]:
    if not ready:
        return
    yield Text("")
    yield Text("Ready pods and endpoints", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column("")
    for title in ("planned for now", "is", "planned lowest", "planned in the end"):
        table.add_column(title, justify="right")
    for one in ready:
        numbers = (one.planned, one.found, one.lowest, one.final)
        table.add_row(str(one.about), *map(str, numbers), style=_STYLES[one.state] if one.state != HAPPENED else "")
    yield table
