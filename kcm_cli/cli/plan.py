"""``kcm plan``: predicts what the controllers would do, on a twin of the cluster."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import yaml
from msgspec.structs import replace
from rich.console import Console

from kcm_cli.cli import plan_compare, plan_flags, usage
from kcm_cli.cli.manager import fail
from kcm_cli.cli.plan_flags import FLAGS, Command
from kcm_cli.cli.plan_markdown import markdown
from kcm_cli.cli.plan_page import comparison_page, plan_page
from kcm_cli.cli.plan_text import show
from kcm_cli.cli.terminal import is_capable
from kcm_cli.machinery import codec
from kcm_cli.machinery.quoting import escaped
from kcm_cli.plan.answer import Answer
from kcm_cli.plan.comparison import Comparison, compare, needed, read_plan
from kcm_cli.plan.files import load, save
from kcm_cli.plan.flag_files import manager_flags
from kcm_cli.plan.live import take
from kcm_cli.plan.planning import plan
from kcm_cli.plan.snapshot import PlanError, Snapshot
from kcm_cli.sandbox import kubeconfig

CHANGES, CONDITION = 2, 3
_PIPED_WIDTH = 4096
T = TypeVar("T", bound=msgspec.Struct)


def main(arguments: Sequence[str]) -> int:
    """Make the plan and print it; returns the exit code."""
    parsed = FLAGS.parse(list(arguments))
    if parsed.values.get("help") and not parsed.problems:
        sys.stdout.write(plan_flags.help_text())
        return 0
    if signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)  # what was begun is cleaned up
    try:
        flags = manager_flags(str(parsed.values["flags-from"])) if parsed.values.get("flags-from") else ()
        command, problems = plan_flags.read(parsed, flags)
        if command is None:
            return fail(problems)
        return _run(command)
    except PlanError as error:
        lines = (line.removeprefix("error: ") for line in str(error).split("\n"))
        return fail([line.removeprefix("Error from server (NotFound): ") for line in lines])
    except KeyboardInterrupt:
        return fail(["interrupted"])


def _run(command: Command) -> int:
    if command.compare:
        return _compare(command)
    progress = _Progress()
    try:
        snapshot = _snapshot(command, progress)
        if command.save:
            _save(snapshot, command.save)
        answer = plan(snapshot, command.changes, command.options, progress)
    finally:
        progress.end()
    _print(answer, command.output)
    if answer.has(command.fail_on):
        return CONDITION
    return CHANGES if command.detailed and answer.changed else 0


def _compare(command: Command) -> int:
    """Compare a saved plan with the cluster, and print that."""
    saved, progress = read_plan(command.compare), _Progress()
    include = tuple(dict.fromkeys((*command.include, *needed(saved))))
    try:
        snapshot = _snapshot(replace(command, include=include), progress)
        if command.save:
            _save(snapshot, command.save)
        found = compare(saved, snapshot)
    finally:
        progress.end()
    if command.output in ("json", "yaml"):
        _print_document(found.json(), command.output)
    elif command.output == "html":
        sys.stdout.write(comparison_page(found))
    else:
        plan_compare.show(_printable(found, Comparison), _console())
    if not found.as_planned:
        return CONDITION
    return 0 if found.complete else CHANGES


def _snapshot(command: Command, progress: "_Progress") -> Snapshot:
    if command.snapshot:
        progress(f"reading {command.snapshot}")
        return load(command.snapshot)
    path, problem = kubeconfig.of_cluster(command.kubeconfig)
    if problem:
        raise PlanError(problem)
    namespace = command.options.namespace

    def taken(kind: str, count: int) -> None:
        progress(f"reading {kind}: {count}")

    return asyncio.run(
        take(path, include=command.include, namespace=namespace, changes=command.changes, progress=taken)
    )


def _save(snapshot: Snapshot, path: str) -> None:
    try:
        save(snapshot, path)
    except OSError as error:
        raise PlanError(f"--save: cannot write {path}: {error.strerror or error}") from None


def _print_document(document: bytes, output: str) -> None:
    if output == "json":
        sys.stdout.buffer.write(document)
        sys.stdout.buffer.flush()
    else:
        sys.stdout.write(yaml.safe_dump(codec.decode_doc(document), sort_keys=False, allow_unicode=True))


def _print(answer: Answer, output: str) -> None:
    if output in ("json", "yaml"):
        _print_document(answer.json(), output)
    elif output == "html":
        sys.stdout.write(plan_page(answer))
    elif output == "markdown":
        sys.stdout.write(markdown(_printable(answer, Answer)))
    else:
        show(_printable(answer, Answer), _console())


def _console() -> Console:
    is_wide = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = _PIPED_WIDTH if is_wide else None
    colours = "auto" if usage.is_bold() else None
    options: Any = {"highlight": False, "markup": False, "emoji": False, "color_system": colours}
    return Console(file=sys.stdout, width=width, **options)


def _printable(answer: T, type_: type[T]) -> T:
    """The answer for a terminal: control characters in names and messages, which others write, are escape sequences."""
    return msgspec.convert(_escaped(msgspec.to_builtins(answer)), type_)


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return "\n".join(escaped(line) for line in value.split("\n"))
    if isinstance(value, dict):
        return {_escaped(name): _escaped(inner) for name, inner in value.items()}
    return [_escaped(inner) for inner in value] if isinstance(value, list | tuple) else value


class _Progress:
    """A line on standard error that is updated in place, on terminals only."""

    def __init__(self) -> None:
        self._shows = is_capable(sys.stderr)
        self._shown = False

    def __call__(self, text: str) -> None:
        if self._shows:
            sys.stderr.write(f"\r\x1b[K{text}")
            sys.stderr.flush()
            self._shown = True

    def end(self) -> None:
        """Erase the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = False
