"""The answer of ``kcm plan`` as text: lines and tables, coloured on terminals."""

from collections.abc import Iterator, Sequence
from itertools import groupby

import msgspec
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from kcm_cli.machinery import codec
from kcm_cli.machinery.quoting import bounded
from kcm_cli.plan.answer import Answer, Difference, Happening, Object, OwnWrite, Problem
from kcm_cli.plan.formatting import clock, counted, span

_MOST = 40
"""Lines of a section; the JSON output has all."""
_AGAIN = 3
"""Events that repeat more often than this are shown once, with their count."""
_SIGNS = {
    "created": ("+", "green"),
    "kept": ("+", "green"),
    "changed": ("~", "yellow"),
    "deleted": ("-", "red"),
    "missing": ("-", "red"),
    "replaced": ("±", "yellow"),
}
_COUNTED = {
    "pending": ("workload has Pending pods", "workloads have Pending pods"),
    "stuck": ("object does not finish", "objects do not finish"),
    "unavailable": ("workload has too few Ready pods for long", "workloads have too few Ready pods for long"),
    "no-endpoints": ("Service loses its endpoints", "Services lose their endpoints"),
    "data": ("volume is lost", "volumes are lost"),
    "pdb": ("eviction is blocked by a disruption budget", "evictions are blocked by disruption budgets"),
    "quota": ("object is over its quota", "objects are over their quotas"),
    "refused": ("change is refused", "changes are refused"),
    "image": ("image cannot be pulled", "images cannot be pulled"),
    "failed": ("job fails", "jobs fail"),
    "drain": ("node is not drained", "nodes are not drained"),
}
_BAD = frozenset(("stuck", "blocked", "refused", "pending", "failed", "job-failed"))
_QUIET_KINDS = frozenset(("Endpoints", "EndpointSlice", "ControllerRevision", "IPAddress"))
"""What follows from pods; counted only."""


def render(answer: Answer) -> RenderableType:
    """The complete answer."""
    return Group(*_sections(answer))


def show(answer: Answer, console: Console) -> None:
    """Print the answer."""
    console.print(render(answer))


def _sections(answer: Answer) -> Iterator[RenderableType]:
    yield Text(headline(answer), style="bold")
    yield from first_lines([Text(line) for line in answer.changes])
    yield Text("")
    yield Text(
        verdict(answer), style="bold red" if _fresh(answer) else f"bold {'yellow' if answer.assumed else 'green'}"
    )
    yield from section("Problems", list(_problems(answer)))
    yield from section("Check this first", list(_risks(answer)))
    if not answer.changes:
        yield from _audit(answer)
    yield from section("What happens", [_happening(one) for one in condensed(answer.timeline)])
    yield from section("What is different in the end", list(_differences(answer)))
    yield from _nodes(answer)
    yield from _writes(answer)
    yield from section(
        "Not in every run", [Text(f"{one.seeds} of {answer.seeds}: {one.text}") for one in answer.varies]
    )
    yield from section("Not modelled", [Text(line, style="dim") for line in answer.not_modelled])


def headline(answer: Answer) -> str:
    """The first line: kind of the plan, horizon and snapshot."""
    source = answer.source
    sizes = f"{counted(source.nodes, 'node')}, {counted(source.pods, 'pod')}"
    cluster = f"{sizes}, {source.server_version or 'unknown version'}"
    runs = f", {answer.seeds} runs" if answer.seeds > 1 else ""
    what = "Plan" if answer.changes else "Takeover audit"
    begins = answer.begins_at or source.taken_at
    taken = f", read at {source.taken_at}" if begins != source.taken_at else ""
    return f"{what} for {span(answer.horizon_s)} from {begins} ({cluster}{runs}{taken})"


def verdict(answer: Answer) -> str:
    """The answer in one line."""
    fresh = _fresh(answer)
    if fresh:
        counts = ", ".join(_counted(kind, len(list(group))) for kind, group in groupby(fresh, key=lambda one: one.kind))
        plural = "s" if len(fresh) > 1 else ""
        return f"{len(fresh)} problem{plural}: {counts}"
    if not answer.changes:
        text = _audited(answer)
    elif answer.differences or answer.unlisted:
        text = "The change brings no problems"
    else:
        text = "Nothing ends differently"
    if not answer.assumed:
        return f"{text}."
    holds = answer.assumed[0] if len(answer.assumed) == 1 else f"{len(answer.assumed)} assumptions hold"
    return f"{text}, if {holds}."


def _audited(answer: Answer) -> str:
    if not answer.audit:
        routine = counted(answer.routine, "write")
        return f"Nothing is written but Leases, Events and the status of autoscalers ({routine})"
    work = sum(one.count for one in answer.audit if not one.scheduled)
    regular = sum(one.count for one in answer.audit if one.scheduled)
    also = f" and {regular} of the regular work of CronJobs and autoscalers" if regular else ""
    if not work:
        return f"Nothing is written but {counted(answer.routine, 'write')} of routine{also}"
    return f"{counted(work, 'write')} besides {answer.routine} of routine{also}"


def _counted(kind: str, count: int) -> str:
    one, several = _COUNTED.get(kind, (kind, kind))
    return f"{count} {one if count == 1 else several}"


def _fresh(answer: Answer) -> list[Problem]:
    return [one for one in answer.problems if not one.already] if answer.changes else []


def section(title: str, lines: list[Text]) -> Iterator[RenderableType]:
    """A title and its lines; nothing if there are none."""
    if not lines:
        return
    yield Text("")
    yield Text(title, style="bold")
    yield from first_lines(lines)


def first_lines(lines: Sequence[Text]) -> Iterator[Text]:
    """The lines, indented; of many, the first ones."""
    for line in lines[:_MOST]:
        for part in line.split("\n"):
            yield Text("  ").append_text(part)
    if len(lines) > _MOST:
        yield Text(f"  and {len(lines) - _MOST} more (-o json has all)", style="dim")


def _risks(answer: Answer) -> Iterator[Text]:
    """The assumptions, and the problems if they do not hold."""
    for line in answer.assumed:
        yield Text(f"assumed: {line}", style="yellow")
    for risk in answer.risks:
        yield Text(f"{risk.text}:", style="yellow")
        for problem in risk.problems:
            yield Text("  ").append_text(_problem(problem, answer))


def _problems(answer: Answer) -> Iterator[Text]:
    """The problems, but not those that exist elsewhere without the change."""
    for one in answer.problems:
        if not (one.elsewhere and one.already):
            yield _problem(one, answer)


def _problem(problem: Problem, answer: Answer) -> Text:
    old = problem.already or not answer.changes
    text = Text()
    text.append(f"{problem.kind:<7} ", style="yellow" if old else "bold red")
    text.append(f"{problem.about}: {problem.text}")
    if problem.already:
        text.append(" (so without the change, too)", style="dim")
    if problem.elsewhere:
        text.append(" (not in what is listed below)", style="dim")
    if problem.seeds < answer.seeds:
        text.append(f" ({problem.seeds} of {answer.seeds} runs)", style="dim")
    return text


def condensed(timeline: Sequence[Happening]) -> list[Happening]:
    """The timeline with frequent happenings, such as the runs of a CronJob, merged into one."""
    groups: dict[tuple[str, Object, str], list[Happening]] = {}
    for one in timeline:
        groups.setdefault((one.what, one.about, one.detail), []).append(one)
    lines: list[Happening] = []
    for some in groups.values():
        if len(some) <= _AGAIN:
            lines += some
        else:
            whole, until_s = sum(one.count for one in some), max(one.until_s for one in some)
            lines.append(msgspec.structs.replace(some[0], count=whole, until_s=until_s))
    return sorted(lines, key=lambda one: one.at_s)


def _happening(one: Happening) -> Text:
    text = Text()
    text.append(f"{when(one)}  ", style="dim")
    text.append(describe(one), style="red" if one.what in _BAD else "")
    return text


_PODS = {
    "created": "{be} created",
    "pending": "{be} Pending{detail}",
    "ready": "{be} Ready",
    "unready": "{be} not Ready any more",
    "terminating": "{be} being deleted{noted}",
    "preempted": "{be} preempted{by}",
    "gone": "{be} deleted",
    "failed": "failed{detail}",
    "succeeded": "succeeded",
}
_OTHERS = {
    "evicted": "{about} is evicted {detail}",
    "blocked": "eviction of {about} is refused: {detail}",
    "complete": "{about} is complete{noted}",
    "job-failed": "{about} failed: {detail}",
    "stuck": "{about} makes no progress: {detail}",
    "refused": "{about} is refused pods: {detail}",
    "scaled": "{about} scales {detail}",
    "drained": "{about} is drained",
}


def when(one: Happening) -> str:
    """``+00:42``, or the first and the last time."""
    first, last = clock(one.at_s), clock(one.until_s)
    return first if first == last else f"{first} to {last}"


def describe(one: Happening) -> str:
    """A happening as text."""
    about, count = one.about, one.count
    plural = "s" if count > 1 else ""
    if one.what == "begun":
        return f"{count} run{plural} of {about} begin{'' if plural else 's'}"
    if one.what in _PODS:
        alone = about.kind == "Pod"
        who, be = str(about) if alone else f"{count} pod{plural} of {about}", "are" if plural and not alone else "is"
        detail, by = f": {one.detail}" if one.detail else "", f" {one.detail}" if one.detail else ""
        noted = f" ({one.detail})" if one.detail else ""
        return f"{who} {_PODS[one.what].format(be=be, detail=detail, by=by, noted=noted)}"
    again = f" ({count} times)" if plural else ""
    noted = f": {one.detail}" if one.detail else ""
    text = _OTHERS.get(one.what, "{about}: {detail}").format(about=about, detail=one.detail, noted=noted)
    return f"{text}{again}"


def _differences(answer: Answer) -> Iterator[Text]:
    quiet = 0
    groups: dict[tuple[str, str, str, str], list[Difference]] = {}
    for one in answer.differences:
        if one.about.kind in _QUIET_KINDS:
            quiet += 1
        elif one.about.kind == "Pod" and one.action not in ("changed", "replaced") and one.owner:
            groups.setdefault((one.action, one.about.kind, one.about.namespace, one.owner), []).append(one)
        else:
            yield _difference(one)
    for (action, kind, namespace, owner), members in groups.items():
        count = sum(one.count for one in members)
        sign, style = _SIGNS[action]
        owner_kind, _, owner_name = owner.partition("/")
        about = Object(owner_kind, namespace, owner_name)
        yield Text(f"{sign} {count} {kind}{'s' if count > 1 else ''} of {about}", style=style)
    if quiet:
        yield Text(f"~ {quiet} of Endpoints, EndpointSlices, ControllerRevisions and IPAddresses follow", style="dim")
    if answer.unlisted:
        yield Text(unlisted(answer), style="dim")


def unlisted(answer: Answer) -> str:
    """What the list of differences lacks."""
    return f"{answer.unlisted} more outside of what -n and -l select"


def _difference(one: Difference) -> Text:
    sign, style = _SIGNS[one.action]
    count = f"{one.count} " if one.count > 1 else ""
    of = f" of {one.owner}" if not one.about.name else ""
    text = Text(f"{sign} {count}{one.about}{of}", style=style)
    fields = sorted(
        one.fields, key=lambda field: (field.path.startswith(("status", "metadata.annotations")), field.path)
    )
    for field in fields[:4]:
        text.append(f"\n    {field.path}: {_value(field.before)} → {_value(field.after)}", style="default")
    if more := len(fields[4:]):
        text.append(f"\n    and {more} more field{'s' if more > 1 else ''}", style="dim")
    return text


def _value(value: object) -> str:
    if value is None:
        return "none"
    return bounded(value if isinstance(value, str) else codec.encode(value).decode(), 80)


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def _titled(title: str, table: Table) -> Iterator[RenderableType]:
    if table.row_count:
        yield Text("")
        yield Text(title, style="bold")
        yield Padding(table, (0, 0, 0, 2), expand=False)


def _audit(answer: Answer) -> Iterator[RenderableType]:
    for title, scheduled in (("What would be written", False), ("Regular work of CronJobs and autoscalers", True)):
        yield from _own_writes(title, list(own_writes(answer, scheduled=scheduled)))


def _own_writes(title: str, rows: Sequence[tuple[str, ...]]) -> Iterator[RenderableType]:
    table = _table("first", "controller", "writes", "object", "owner", "times", "refused")
    for row in rows[:_MOST]:
        table.add_row(*row)
    if len(rows) > _MOST:
        title = f"{title} (the first {_MOST} of {len(rows)}; -o json has all)"
    yield from _titled(title, table)


def own_writes(answer: Answer, *, scheduled: bool) -> Iterator[tuple[str, ...]]:
    """A row for each write of the audit. Deletions of collections in a namespace are merged."""
    chosen = (one for one in answer.audit if one.scheduled == scheduled)
    for (controller, verb, namespace, _), group in groupby(chosen, key=_written_to):
        some = list(group)
        if verb == "deletecollection" and len(some) > 1:
            what = f"{verb} of {len(some)} kinds"
            first = clock(some[0].at_s)
            yield first, controller, what, f"Namespace {namespace}", "", str(sum(one.count for one in some)), ""
            continue
        for one in some:
            what = f"{one.verb} {one.resource}"
            yield clock(one.at_s), one.controller, what, str(one.about), one.owner, str(one.count), one.message


def _written_to(one: OwnWrite) -> tuple[str, str, str, str]:
    return one.controller, one.verb, one.about.namespace, one.about.name


def _nodes(answer: Answer) -> Iterator[RenderableType]:
    table = _table("node", "cpu", "memory", "pods")
    moved = [
        one
        for one in answer.nodes
        if (one.cpu, one.memory, one.pods) != (one.cpu_before, one.memory_before, one.pods_before)
    ]
    for one in moved[:_MOST]:
        table.add_row(
            one.node,
            _moved(one.cpu_before, one.cpu),
            _moved(one.memory_before, one.memory),
            _moved(one.pods_before, one.pods),
        )
    yield from _titled("Requested of nodes, in percent", table)


def _moved(before: int, after: int) -> str:
    return f"{after}" if before == after else f"{before} → {after}"


def written(answer: Answer) -> Iterator[tuple[tuple[str, str, str], tuple[int, int, int]]]:
    """(controller, verb, resource), and the numbers of writes without the change, with it, and rejected, over all
    owners."""
    for key, group in groupby(answer.writes, key=lambda one: (one.controller, one.verb, one.resource)):
        some = list(group)
        yield key, (sum(o.before for o in some), sum(o.count for o in some), sum(o.refused for o in some))


def _writes(answer: Answer) -> Iterator[RenderableType]:
    if not answer.changes:
        return
    table = _table("controller", "writes", "without", "with", "refused")
    last = ""
    for (name, verb, resource), (before, count, refused) in written(answer):
        table.add_row(name if name != last else "", f"{verb} {resource}", str(before), str(count), str(refused or ""))
        last = name
    yield from _titled("Writes of controllers that differ", table)
