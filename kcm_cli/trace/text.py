"""A trace as text and as JSON. Pure."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import msgspec

from kcm_cli.api.short_names import kind_of
from kcm_cli.runtime.cause_ring import EVICTED, Later, Sync, Wrote
from kcm_cli.runtime.causes import ADDED, DELETED, MODIFIED, Change
from kcm_cli.trace.join import INFERRED, KNOWN, Node, Trace, deletion, first_cause, is_grave, refused, swings, troubles
from kcm_cli.trace.steps import DELETED as GONE
from kcm_cli.trace.steps import ENDED, IS, REFUSED, SAYS, WRITTEN, Step

_CHANGES = {ADDED: "was created", MODIFIED: "was changed", DELETED: "was deleted"}
HEAD = 5
"""Lines that say what happened, and why."""
_DEEPEST = 24
"""Levels that are indented; deeper ones are not indented further."""


def clock(at: float) -> str:
    """The time of day, UTC, to the millisecond."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S.%f")[:-3]
    except (ValueError, OverflowError, OSError):  # no time that a calendar has
        return "?"


def plain(text: str) -> str:
    """Without characters that move a terminal's cursor or forge a line."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def sentence(node: Node) -> str:
    """What a node says, without its time."""
    return plain(_sentence(node))


def _sentence(node: Node) -> str:
    what = node.what
    if isinstance(what, Step):
        origin = f"; {node.origin}" if node.origin else ""
        return f"{_sentence_of(what)} ({_mark(node, what)}{origin})"
    origin = f" - {node.origin}" if node.origin else ""
    if node.edge == INFERRED and node.parent is not None:
        origin += f" (what it followed from is inferred: {node.basis})"
    match what:
        case Change():
            marked = what.deleting and what.type != DELETED
            verb = "was marked for deletion" if marked else _CHANGES.get(what.type, "was there")
            why = f', for "{what.why}"' if what.why else ""
            return f"{what.kind} {what.key} {verb}{why} (version {what.version or '?'}){origin}"
        case Sync():
            more = f", {node.more} more cause{'s' if node.more > 1 else ''}" if node.more else ""
            work = f"synced {what.kind or what.queue} {what.key}" if what.key else "made a pass"
            return f"{what.controller} {work}{more}{origin}"
        case Later():
            if what.after_s < 0:
                return f"failed ({what.error}); given up until its next change"
            if what.error:
                return f"failed ({what.error}); retried after {_seconds(what.after_s)}"
            return f"waits for {_seconds(what.after_s)}"
        case Wrote():
            client = f"{_client(what)}: " if _is_root(node) else ""
            return f"{client}{_write(what)}{origin}"


def _is_root(node: Node) -> bool:
    """Whether it is a write of a client, of which no sync tells who it is."""
    return isinstance(node.what, Wrote) and bool(node.what.agent) and not node.what.sync


def _client(what: Wrote) -> str:
    """Who sent a write that an API server recorded, with which program and field manager."""
    named = what.agent.partition("/")[0]
    manager = f", field manager {what.manager}" if what.manager not in ("", named) else ""
    return f"{what.controller} ({what.agent}{manager})"


def _sentence_of(step: Step) -> str:
    thing = f"{step.kind} {step.key}"
    times = f" ({step.count} times)" if step.count > 1 else ""
    if step.verb == SAYS:
        return f"{step.actor or 'someone'} says of {thing}: {step.detail}{times}"
    if step.verb == IS:
        return f"{thing}: {step.detail}"
    if step.verb == REFUSED:
        return f"{step.actor or 'someone'} was refused for {thing}: {step.detail}{times}"
    if step.verb == WRITTEN:
        return f"{thing}: {step.verb} by {step.actor}"
    if step.verb == ENDED:
        return f"{thing} ended: {step.detail}"
    if step.key.endswith("/"):
        return f"all of {thing} were deleted by {step.actor}"
    by = f" by {step.actor}" if step.actor else ""
    return f"{thing} {step.verb}{by}{f': {step.detail}' if step.detail else ''}{times}"


def _mark(node: Node, step: Step) -> str:
    """Whether a step is known, and whether it is known that it followed from the one before."""
    mark = f"{KNOWN if step.is_known else INFERRED}: {step.source}"
    if node.parent is not None and node.edge != KNOWN:
        mark += f"; what it followed from is inferred: {node.basis}"
    return mark


def _write(what: Wrote) -> str:
    plural, _, subresource = what.resource.partition("/")
    thing = f"{what.kind or kind_of(plural)}{'/' + subresource if subresource else ''} {what.key}"
    reason = f' "{what.reason}"' if what.reason else ""
    if what.code == 0:
        answer = f"no answer ({what.refusal})"
    elif what.code < 300:
        answer = f"{what.code}"
    else:
        answer = f"REFUSED {what.code} {what.refusal}"
    return f"{what.verb} {thing}{reason}: {answer}"


def _seconds(seconds: float) -> str:
    return f"{seconds * 1000:.0f}ms" if seconds < 1 else f"{seconds:.1f}s" if seconds < 600 else f"{seconds / 60:.0f}m"


def head(found: Trace) -> list[str]:
    """At most HEAD lines: what happened to the target, who did it, and what it came from."""
    deleted = deletion(found)
    if deleted is not None:
        return [f"{_time(deleted)} {plain(_gone(found, deleted))}", *_back(deleted)]
    held, scaled = refused(found) or troubles(found), swings(found)
    is_event = bool(held) and not is_grave(held[-1])  # an Event alone, which may be over
    if held and not (scaled and is_event):
        word = "refused" if isinstance(held[-1].what, Wrote) else "trouble"
        return _several(held, word)
    if scaled:
        return _several(scaled, "scaled")
    own = [node for node in found.nodes if node.mentions(found.target)]
    if not own:
        return [f"Nothing is recorded about {plain(found.target.text)}: what happened to it, and why, is unknown."]
    last = max(own, key=lambda node: node.at)
    return [f"{_time(last)} last: {_by(last)}{sentence(last)}", *_back(last)]


def _several(nodes: Sequence[Node], word: str) -> list[str]:
    """The last of several steps of one kind, how many there were, and where it came from."""
    last = nodes[-1]
    total = sum(node.what.count if isinstance(node.what, Step) else 1 for node in nodes)
    times = f" ({total} times since {clock(nodes[0].at)})" if total > 1 and nodes[0] is not last else ""
    return [f"{_time(last)} {word}{times}: {_by(last)}{sentence(last)}", *_back(last)]


def _gone(found: Trace, node: Node) -> str:
    what = node.what
    if isinstance(what, Step):
        return _sentence(node)
    if not isinstance(what, Wrote):
        return f"deleted: {_sentence(node)}"
    reason = f', for "{what.reason.removeprefix(EVICTED)}"' if what.reason else ""
    kind, _, name = what.owner.partition(" ")
    owner = f", of {kind} {name}" if name else ""
    who = _client(what) if _is_root(node) else what.controller
    verb = "deleted" if what.verb in ("delete", "deletecollection") else "evicted"
    return f"{found.target.text} was {verb} by {who}{owner}{reason} ({KNOWN})"


def _by(node: Node) -> str:
    return f"{plain(node.what.controller)}: " if isinstance(node.what, Wrote) and not _is_root(node) else ""


def _time(node: Node) -> str:
    is_vague = isinstance(node.what, Step) and node.what.vague
    word = "before " if isinstance(node.what, Step) and node.what.verb == GONE else "after "
    return f"{word if is_vague else ''}{clock(node.at)}"


def _back(node: Node) -> list[str]:
    """The way back to the first cause, in the lines that are left. Where the first cause is a change of an object that
    the manager created, its creation and the first cause of that follow."""
    steps = [one for one in node.ancestors() if not isinstance(one.what, Later)]
    if node.origin and not steps and not isinstance(node.what, Change):
        return [f"  <- {plain(node.origin)}"]
    before = _birth(steps[-1] if steps else node)
    room = HEAD - 1 - len(before)
    lines = [_step(one, below) for below, one in zip((node, *steps), steps, strict=False)]
    return [*(lines if len(lines) <= room else _short(node, steps, room)), *before]


def _step(node: Node, below: Node) -> str:
    """A step back. below: what followed from it."""
    arrow = "<~" if below.edge == INFERRED else "<-"
    return f"  {arrow} {_time(node)} {_by(node)}{sentence(node)}"


def _birth(node: Node) -> list[str]:
    birth = node.birth
    if birth is None:
        return []
    first = first_cause(birth)
    after = f", which followed from {_time(first)} {sentence(first)}" if first is not birth else ""
    return [f"     it was created at {_time(birth)} by {plain(getattr(birth.what, 'controller', ''))}{after}"]


def _short(node: Node, steps: Sequence[Node], room: int) -> list[str]:
    """The writes and steps and the first cause alone; then without writes of a status; what is still too long loses its
    middle."""
    first = steps[-1]
    chosen = [one for one in steps if isinstance(one.what, Wrote | Step) or one is first]
    if len(chosen) > room:
        chosen = [one for one in chosen if not _is_of_status(one) or one is first]
    lines = [_step(one, node if one is steps[0] else steps[steps.index(one) - 1]) for one in chosen]
    if len(lines) <= room:
        return lines
    return [*lines[: room - 2], f"  <- ... {len(lines) - room + 1} steps between them", lines[-1]]


def _is_of_status(node: Node) -> bool:
    return isinstance(node.what, Wrote) and node.what.resource.endswith("/status")


def tree(found: Trace) -> Iterator[str]:
    """The lines of all trees."""
    for root in found.roots:
        waiting: list[tuple[Node, str, str]] = [(root, "", "")]
        while waiting:
            node, before, below = waiting.pop()
            yield f"{_time(node)}  {before}{sentence(node)}"
            deep = len(below) >= 3 * _DEEPEST
            for child in reversed(node.children):
                is_last = child is node.children[-1]
                indent = "" if deep else "   " if is_last else "│  "
                waiting.append((child, below + ("└─ " if is_last else "├─ "), below + indent))


def lines(found: Trace, notes: Sequence[str]) -> Iterator[str]:
    """The whole text: what happened, then everything that is recorded. notes: about the sources."""
    yield from head(found)
    if found.roots:
        yield ""
        yield from tree(found)
    yield ""
    yield from (plain(note) for note in notes)
    yield f"Times are UTC. {LEGEND}"


LEGEND = "Every line is known unless it says inferred or unknown; <~ is an inferred cause."


def day(at: float) -> str:
    """The date and time, UTC."""
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return "?"


def document(found: Trace, notes: Sequence[str], started: float = 0.0, forgotten: float = 0) -> dict[str, object]:
    """The trace as JSON: the nodes with the number of their parent, so that readers need not recurse. started,
    forgotten: of the manager's record."""
    ordered = sorted(found.nodes, key=lambda node: node.at)
    numbers = {id(node): number for number, node in enumerate(ordered)}
    target = found.target
    return {
        "target": {"kind": kind_of(target.kind), "namespace": target.namespace, "name": target.name},
        "recordedSince": started,
        "forgotten": forgotten,
        "head": head(found),
        "notes": [plain(note) for note in notes],
        "nodes": [_node(node, numbers) for node in ordered],
    }


def _node(node: Node, numbers: dict[int, int]) -> dict[str, object]:
    parent = numbers.get(id(node.parent)) if node.parent is not None else None
    entry = msgspec.structs.asdict(node.what)
    if isinstance(node.what, Sync):
        entry["causes"] = [msgspec.structs.asdict(cause) for cause in node.what.causes]
    return {
        "number": numbers[id(node)],
        "parent": parent,
        "at": node.at,
        "edge": node.edge,
        "basis": node.basis,
        "origin": node.origin,
        "text": sentence(node),
        "type": type(node.what).__name__.removesuffix("Document").lower(),
        "entry": entry,
    }


def new_lines(found: Trace, shown: set[tuple[object, ...]]) -> Iterator[str]:
    """A line for each new step, with the step before it. ``shown`` becomes the steps that there are now."""
    there: set[tuple[object, ...]] = set()
    for node in sorted(found.nodes, key=lambda one: one.at):
        place = msgspec.structs.astuple(node.what)
        if place not in shown and place not in there:
            arrow = "<~" if node.edge == INFERRED else "<-"
            after = f"   {arrow} {sentence(node.parent)}" if node.parent is not None else ""
            yield f"{_time(node)}  {sentence(node)}{after}"
        there.add(place)
    shown.clear()
    shown.update(there)
