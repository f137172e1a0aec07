"""Simulates simple commands: their end, exit code, output and files.

It knows ``sleep``, ``true``, ``false``, ``echo``, ``cat`` and the like, and shell scripts of them (``interpreter``)
with tests of files. Anything else is unknown. Pure.
"""

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from kcm_cli.sandbox.nodes.filesystem import Files, FileSystem, There, Work
from kcm_cli.sandbox.nodes.interpreter import MOST_STEPS, Interpreter
from kcm_cli.sandbox.nodes.outcomes import Outcome, Written
from kcm_cli.sandbox.nodes.signals import Reaction, Signals
from kcm_cli.sandbox.nodes.variables import Variables
from kcm_cli.sandbox.nodes.volumes import Volumes

MOST_WORK = 1 << 20
"""The limit for the work of a program (see ``filesystem.Work``)."""
_MOST_RESTS = 16
"""The limit for intervals in which a program waits."""
_NO_MORE = "[no more of this log is known: its script takes too many steps]\n"
_NONE: Mapping[str, str | None] = MappingProxyType({})


def outcome(
    words: Sequence[str],
    env: Mapping[str, str],
    scratch: tuple[str, ...] = (),
    files: Files = _NONE,
    volumes: Volumes | None = None,
    until_s: float = math.inf,
) -> Outcome | None:
    """The outcome of a program with its arguments; None if it is unknown.

    env: the known variables. scratch: folders that contain only ``files`` and those that the program writes. until_s:
    when the simulation ends.
    """
    return outcome_among(There(files, scratch), words, env, volumes, until_s)


def outcome_among(
    there: There,
    words: Sequence[str],
    env: Mapping[str, str],
    volumes: Volumes | None = None,
    until_s: float = math.inf,
    most_work: float = MOST_WORK,
) -> Outcome | None:
    """As ``outcome``, with these files. most_work: programs that cost more are unknown, too."""
    machine = _shell(there, env, volumes, Work(most_work))
    machine.until_s = until_s
    return machine.outcome() if machine.runs(words) else None


def log_among(
    there: There, words: Sequence[str], env: Mapping[str, str], volumes: Volumes | None, until_s: float
) -> Outcome | None:
    """As ``outcome_among``. Of a program that takes too many steps only the output up to the limit is known."""
    machine = _shell(there, env, volumes, Work(MOST_WORK))
    machine.until_s = until_s
    if machine.runs(words):
        return machine.outcome()
    if machine.steps <= MOST_STEPS and machine.fs.work.done <= MOST_WORK:
        return None
    return Outcome(math.inf, 0, output=(*machine.output, Written(machine.elapsed_s, _NO_MORE)))


def signals_among(
    there: There, words: Sequence[str], env: Mapping[str, str], volumes: Volumes | None = None
) -> Signals | None:
    """How a program reacts to SIGTERM; None if it sets no trap for it, or if that is unknown."""
    if not any("trap" in word for word in words):
        return None
    work = Work(MOST_WORK)
    machine = _shell(there, env, volumes, work)
    if not machine.runs(words) or not machine.rests or len(machine.rests) > _MOST_RESTS:
        return None
    reactions: list[Reaction] = []
    for from_s, until_s, at_once in machine.rests:
        asked = _shell(there, env, volumes, work)
        asked.asked_s = from_s + min(0.5, (until_s - from_s) / 2)
        since_s = asked.asked_s if at_once else until_s
        if not asked.runs(words):
            return None
        after_s = math.inf if math.isinf(asked.elapsed_s) else asked.elapsed_s - since_s
        reactions.append(Reaction(from_s, until_s, at_once, after_s, asked.code))
    return Signals(tuple(reactions), *machine.again)


def _shell(there: There, env: Mapping[str, str], volumes: Volumes | None, work: Work) -> "Interpreter":
    files = FileSystem(dict(there.files), there.scratch, set(there.gone), volumes, work)
    folder = "" if volumes is None else volumes.working_dir
    return Interpreter(Variables(env, files), files, folder, began=there.began, input=there.input)
