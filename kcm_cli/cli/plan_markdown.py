"""The answer of ``kcm plan`` in Markdown, for a comment on a pull request."""

from collections.abc import Iterator

from kcm_cli.cli.plan_text import condensed, describe, headline, own_writes, unlisted, verdict, when, written
from kcm_cli.plan.answer import Answer, Difference

_MOST = 50
_SIGNS = {"created": "+", "kept": "+", "changed": "~", "deleted": "-", "missing": "-", "replaced": "±"}


def markdown(answer: Answer) -> str:
    """The complete comment."""
    return "\n".join(_lines(answer)) + "\n"


def _lines(answer: Answer) -> Iterator[str]:
    fresh = [one for one in answer.problems if not one.already]
    sign = "❌" if fresh and answer.changes else "⚠️" if answer.assumed else "✅"
    yield f"### {sign} kcm plan: {_plain(verdict(answer))}"
    yield ""
    yield _plain(headline(answer))
    yield ""
    yield from (f"- {_code(line)}" for line in answer.changes)
    listed = [one for one in answer.problems if not (one.elsewhere and one.already)]
    if listed:
        yield from ("", "| problem | object | what |", "| --- | --- | --- |")
        for problem in listed:
            already = " *(so without the change, too)*" if problem.already else ""
            already += " *(not in what is listed below)*" if problem.elsewhere else ""
            runs = f" *({problem.seeds} of {answer.seeds} runs)*" if problem.seeds < answer.seeds else ""
            yield f"| {problem.kind} | {_code(str(problem.about))} | {_plain(problem.text)}{already}{runs} |"
    if answer.assumed:
        yield ""
        yield from (f"- ⚠️ assumed: {_plain(line)}" for line in answer.assumed)
    for risk in answer.risks:
        yield ""
        yield f"⚠️ {_plain(risk.text)}:"
        yield ""
        yield from (f"- {one.kind} {_code(str(one.about))}: {_plain(one.text)}" for one in risk.problems)
    yield from _folded("What happens", [f"`{when(one)}` {_plain(describe(one))}" for one in condensed(answer.timeline)])
    changed = [_difference(one) for one in answer.differences]
    changed += [unlisted(answer)] if answer.unlisted else []
    yield from _folded("What is different in the end", changed)
    for title, scheduled in (("What would be written", False), ("Regular work of CronJobs and autoscalers", True)):
        audit = [
            f"`{first}` {controller}: {what} {_code(about)} ×{times}"
            for first, controller, what, about, _, times, _ in own_writes(answer, scheduled=scheduled)
        ]
        yield from _folded(title, audit)
    writes = [f"{name}: {verb} {what}: {before} → {now}" for (name, verb, what), (before, now, _) in written(answer)]
    yield from _folded("Writes of controllers", writes)
    yield from _folded(
        "Not in every run", [f"{one.seeds} of {answer.seeds}: {_plain(one.text)}" for one in answer.varies]
    )
    yield from _folded("Not modelled", [_plain(line) for line in answer.not_modelled])


def _folded(title: str, lines: list[str]) -> Iterator[str]:
    if not lines:
        return
    yield from ("", f"<details><summary>{title} ({len(lines)})</summary>", "")
    yield from (f"- {line}" for line in lines[:_MOST])
    if len(lines) > _MOST:
        yield f"- and {len(lines) - _MOST} more"
    yield from ("", "</details>")


def _difference(one: Difference) -> str:
    about = str(one.about) if one.about.name else f"{one.count} {one.about.kind} of {one.owner}"
    paths = ", ".join(_code(field.path) for field in one.fields[:4])
    more = f" and {len(one.fields) - 4} more" if len(one.fields) > 4 else ""
    return f"`{_SIGNS[one.action]}` {_code(about)}{f': {paths}{more}' if paths else ''}"


def _plain(text: str) -> str:
    """The text with all markup escaped."""
    flat = " ".join(text.split())
    for sign in "\\`*_<>|[]#@":
        flat = flat.replace(sign, f"\\{sign}" if sign not in "<>@" else {"<": "&lt;", ">": "&gt;", "@": "&#64;"}[sign])
    return flat


def _code(text: str) -> str:
    flat = " ".join(text.split()).replace("`", "'").replace("|", "\\|")
    return f"`{flat}`"
