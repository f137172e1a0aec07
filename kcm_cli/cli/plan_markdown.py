"""The answer of ``kcm plan`` in Markdown, for a comment on a pull request."""

from collections.abc import Iterator, Sequence

from kcm_cli.cli.plan_text import condensed, describe, headline, own_writes, unlisted, verdict, when, written
from kcm_cli.machinery.quoting import bounded
from kcm_cli.plan.answer import Answer, Difference

LARGEST = 65_536
"""Characters that a comment on GitHub has at most."""
_MOST = 50, 20, 8, 3, 1
"""Lines of a section: the most with which the comment is not too large."""
_LONGEST = 400
"""Characters of a text from the cluster."""
_SIGNS = {"created": "+", "kept": "+", "changed": "~", "deleted": "-", "missing": "-", "replaced": "±"}


def markdown(answer: Answer) -> str:
    """The comment. Of what does not fit into one, each section has the first lines."""
    text = ""
    for most in _MOST:
        text = "\n".join(_lines(answer, most)) + "\n"
        if len(text) <= LARGEST:
            break
    return text


def _lines(answer: Answer, most: int) -> Iterator[str]:
    fresh = [one for one in answer.problems if not one.already]
    sign = "❌" if fresh and answer.changes else "⚠️" if answer.assumed else "✅"
    yield f"### {sign} kcm plan: {_plain(verdict(answer))}"
    yield ""
    yield _plain(headline(answer))
    yield ""
    yield from _items([_code(line) for line in answer.changes], most)
    listed = [one for one in answer.problems if not (one.elsewhere and one.already)]
    if listed:
        yield from ("", "| problem | object | what |", "| --- | --- | --- |")
        for problem in listed[:most]:
            already = " *(so without the change, too)*" if problem.already else ""
            already += " *(not in what is listed below)*" if problem.elsewhere else ""
            runs = f" *({problem.seeds} of {answer.seeds} runs)*" if problem.seeds < answer.seeds else ""
            yield f"| {problem.kind} | {_code(str(problem.about))} | {_plain(problem.text)}{already}{runs} |"
        if len(listed) > most:
            yield from ("", f"and {len(listed) - most} more")
    if answer.assumed:
        yield ""
        yield from _items([f"⚠️ assumed: {_plain(line)}" for line in answer.assumed], most)
    for risk in answer.risks:
        yield ""
        yield f"⚠️ {_plain(risk.text)}:"
        yield ""
        yield from _items([f"{one.kind} {_code(str(one.about))}: {_plain(one.text)}" for one in risk.problems], most)
    happens = [f"`{when(one)}` {_plain(describe(one))}" for one in condensed(answer.timeline)]
    yield from _folded("What happens", happens, most)
    changed = [_difference(one) for one in answer.differences]
    changed += [unlisted(answer)] if answer.unlisted else []
    yield from _folded("What is different in the end", changed, most)
    for title, scheduled in (("What would be written", False), ("Regular work of CronJobs and autoscalers", True)):
        audit = [
            f"`{first}` {controller}: {what} {_code(about)} ×{times}"
            for first, controller, what, about, _, times, _ in own_writes(answer, scheduled=scheduled)
        ]
        yield from _folded(title, audit, most)
    writes = [f"{name}: {verb} {what}: {before} → {now}" for (name, verb, what), (before, now, _) in written(answer)]
    yield from _folded("Writes of controllers", writes, most)
    varies = [f"{one.seeds} of {answer.seeds}: {_plain(one.text)}" for one in answer.varies]
    yield from _folded("Not in every run", varies, most)
    yield from _folded("Not modelled", [_plain(line) for line in answer.not_modelled], most)


def _folded(title: str, lines: Sequence[str], most: int) -> Iterator[str]:
    if lines:
        yield from ("", f"<details><summary>{title} ({len(lines)})</summary>", "")
        yield from _items(lines, most)
        yield from ("", "</details>")


def _items(lines: Sequence[str], most: int) -> Iterator[str]:
    yield from (f"- {line}" for line in lines[:most])
    if len(lines) > most:
        yield f"- and {len(lines) - most} more"


def _difference(one: Difference) -> str:
    about = str(one.about) if one.about.name else f"{one.count} {one.about.kind} of {one.owner}"
    paths = ", ".join(_code(field.path) for field in one.fields[:4])
    more = f" and {len(one.fields) - 4} more" if len(one.fields) > 4 else ""
    return f"`{_SIGNS[one.action]}` {_code(about)}{f': {paths}{more}' if paths else ''}"


def _plain(text: str) -> str:
    """The text with all markup escaped."""
    flat = bounded(" ".join(text.split()), _LONGEST)
    for sign in "\\`*_<>|[]#@":
        flat = flat.replace(sign, f"\\{sign}" if sign not in "<>@" else {"<": "&lt;", ">": "&gt;", "@": "&#64;"}[sign])
    return flat


def _code(text: str) -> str:
    flat = bounded(" ".join(text.split()), _LONGEST).replace("`", "'").replace("|", "\\|")
    return f"`{flat}`"
