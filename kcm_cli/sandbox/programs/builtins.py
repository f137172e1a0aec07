"""The commands that a shell carries out itself, and ``sleep`` and ``kill``.

Each takes the shell that runs it and its words, and returns an exit code.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.programs import file_commands
from kcm_cli.sandbox.programs.control import Ended, Jump, Returned
from kcm_cli.sandbox.programs.errors import Unknown, Unsupported
from kcm_cli.sandbox.programs.shell import FIRST_NUMBER, LEAVE, Job, Shell

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SPAN = re.compile(r"(\d+(?:\.\d*)?|\.\d+)([smhd]?)", re.ASCII)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_SETTING = re.compile(r"([A-Za-z_]\w*)=(.*)", re.ASCII | re.DOTALL)
_OPTIONS = {"errexit": "e", "nounset": "u", "xtrace": "x", "pipefail": "P"}
"""Named options of shells, and letters for them: ``P`` is none of shells."""
_SAFE = re.compile(r"[\w./:=@%+,-]+", re.ASCII)
_SIGNALS = {
    "HUP": 1, "INT": 2, "QUIT": 3, "KILL": 9, "USR1": 10, "USR2": 12, "PIPE": 13, "TERM": 15, "CONT": 18, "STOP": 19,
    "WINCH": 28,
}  # fmt: skip
_USAGE = 2
Command = Callable[[Shell, Sequence[str]], int]


def shell_options(words: Sequence[str]) -> tuple[dict[str, bool], list[str]]:
    """The letters of the options of a shell or of ``set``, each with whether it is set; and the other words."""
    found: dict[str, bool] = {}
    rest = list(words)
    while rest and rest[0][:1] in ("-", "+") and rest[0] not in ("-", "--"):
        word = rest.pop(0)
        letters = word[1:]
        if letters.endswith("o"):
            named = rest.pop(0) if rest else ""
            letters = letters[:-1] + _OPTIONS.get(named, "?")
        found |= dict.fromkeys(letters, word[0] == "-")
    return found, rest


def quoted(text: str | None) -> str:
    """A word as ``set -x`` and ``trap`` show it."""
    if text is None:
        return "?"
    return text if _SAFE.fullmatch(text) else "'" + text.replace("'", "'\\''") + "'"


def silent(_: Shell, __: Sequence[str]) -> int:
    return 0


def false(_: Shell, __: Sequence[str]) -> int:
    return 1


def sleep(shell: Shell, words: Sequence[str]) -> int:
    total = 0.0
    if not words[1:]:
        shell.say("sleep: missing operand\n", error=True)
        return 1
    for word in words[1:]:
        if word in ("inf", "infinity"):
            total = math.inf
            continue
        span = _SPAN.fullmatch(word)
        if span is None:
            shell.say(f"sleep: invalid number '{word[:100]}'\n", error=True)
            return 1
        total += float(span[1]) * _UNITS[span[2]]
    shell.rest(total)
    return 0


def pwd(shell: Shell, _: Sequence[str]) -> int:
    if not shell.folder:
        return shell.output_unknown()
    shell.say(f"{shell.folder}\n")
    return 0


def cd(shell: Shell, words: Sequence[str]) -> int:
    """Change the working directory. Folders of the image are assumed to exist."""
    if len(words) > 2 or words[1:] == ["-"]:
        raise Unknown
    target = words[1] if words[1:] else shell.variables.get("HOME")
    if target is None:
        raise Unknown
    place = shell.place(target)
    if not place.startswith("/"):
        raise Unknown
    if shell.fs.lacks_folder(place):
        shell.say(f"{shell.called}: cd: can't cd to {target}: No such file or directory\n", error=True)
        return _USAGE
    shell.folder = place
    return 0


def leave(shell: Shell, words: Sequence[str]) -> int:
    """``exit``"""
    if words[1:]:
        shell.code = _code(shell, words[1])
    raise Ended


def give_back(shell: Shell, words: Sequence[str]) -> int:
    """``return``"""
    if words[1:]:
        shell.code = _code(shell, words[1])
    raise Returned


def _code(shell: Shell, text: str) -> int:
    if re.fullmatch(r"\d{1,9}", text, re.ASCII) is None:
        shell.fail(f"exit: Illegal number: {text[:100]}")
    return int(text) % 256


def leave_loop(_: Shell, words: Sequence[str]) -> int:
    """``break`` and ``continue``"""
    levels = words[1] if words[1:] else "1"
    if re.fullmatch(r"[1-9]\d?", levels, re.ASCII) is None:
        raise Unknown
    raise Jump(int(levels), goes_on=words[0] == "continue")


def export(shell: Shell, words: Sequence[str]) -> int:
    if not words[1:]:
        raise Unknown
    for word in words[1:]:
        match = _SETTING.fullmatch(word)
        if match is not None:
            shell.variables.put(match[1], match[2])
        elif word.startswith("-") or _NAME.fullmatch(word) is None:
            raise Unknown
        shell.variables.exported |= {match[1] if match is not None else word}
    return 0


def set_options(shell: Shell, words: Sequence[str]) -> int:
    """``set -e``, ``set -o pipefail``, ``set -- ARGUMENT…`` and the like."""
    given, rest = shell_options(words[1:])
    if not words[1:] or given.keys() - set("euxPE"):
        raise Unsupported(" ".join(words))
    shell.strict, shell.must_be_set = given.get("e", shell.strict), given.get("u", shell.must_be_set)
    shell.traced, shell.pipefail = given.get("x", shell.traced), given.get("P", shell.pipefail)
    if rest and rest != ["-"]:
        shell.variables.parameters = tuple(rest[1:] if rest[0] in ("-", "--") else rest)
    return 0


def trap(shell: Shell, words: Sequence[str]) -> int:
    """Set traps of the first shell, which alone gets signals."""
    if len(words) < 3 or words[1] == "-" or words[1].startswith("-"):
        names = words[2:] if words[1:2] == ["-"] else words[1:]
        for name in map(signal_name, names if shell.depth == 1 else ()):
            shell.traps.pop(name, None)
        return 0
    if shell.depth == 1:
        for name in map(signal_name, words[2:]):
            shell.traps[name] = words[1]
    return 0


def wait(shell: Shell, words: Sequence[str]) -> int:
    """Wait for all background jobs, or for some."""
    if any(word.startswith("-") for word in words[1:]):
        raise Unknown
    jobs = [_job(shell, word) for word in words[1:]] if words[1:] else list(shell.jobs)
    known = [job for job in jobs if job is not None]
    end_s = max((job.ends_s for job in known), default=shell.elapsed_s)
    if shell.rest(max(0.0, end_s - shell.elapsed_s), waits=True):
        return 143
    shell.jobs = [job for job in shell.jobs if job not in known]
    if len(known) < len(jobs):
        return 127
    return known[-1].code if words[1:] else 0


def kill(shell: Shell, words: Sequence[str]) -> int:
    """Signal the first process, through its node."""
    name, rest = "TERM", list(words[1:])
    if rest[:1] == ["-l"]:
        raise Unknown
    if rest and rest[0] in ("-s", "-n"):
        name, rest = signal_name("".join(rest[1:2])), rest[2:]
    elif rest and re.fullmatch(r"-[A-Za-z0-9]+", rest[0]) is not None:
        name, rest = signal_name(rest[0][1:]), rest[1:]
    rest = rest[1:] if rest[:1] == ["--"] else rest
    if not rest or (name not in _SIGNALS and name != LEAVE):
        why = f"bad signal name '{name[:100]}'" if rest else "you need to specify whom to kill"
        shell.say(f"kill: {why}\n", error=True)
        return 1
    code = 0
    for word in rest:
        if not _is_signalled(shell, word, name):
            shell.say(f"kill: can't kill pid {word[:100]}: No such process\n", error=True)
            code = 1
    return code


def _is_signalled(shell: Shell, word: str, name: str) -> bool:
    """Send a signal to a process; returns whether it exists. The name of signal 0 is ``EXIT``."""
    number = int(word) if re.fullmatch(r"\d{1,9}", word, re.ASCII) else 0
    if (number == FIRST_NUMBER and shell.assumes) or _job(shell, word) is not None:
        raise Unsupported("kill of a shell or of a command in the background")
    if number == 1 and name != LEAVE:
        if not shell.assumes:
            raise Unknown  # it signals itself
        shell.signals.append((shell.elapsed_s, name))
    return number == 1


def _job(shell: Shell, word: str) -> Job | None:
    number = word[1:] if word.startswith("%") else ""
    if not number and re.fullmatch(r"\d{1,9}", word, re.ASCII):
        number = str(int(word) - FIRST_NUMBER)
    return next((job for job in shell.jobs if str(job.number) == number), None)


def signal_name(text: str) -> str:
    """A signal's name without SIG; ``EXIT`` for 0."""
    name = text.upper().removeprefix("SIG")
    if name == "0":
        return LEAVE
    return next((known for known, number in _SIGNALS.items() if str(number) == name), name)


def run_other(shell: Shell, words: Sequence[str]) -> int:
    """``exec``"""
    if not words[1:]:
        return 0
    shell.traps.clear()
    shell.code = shell.launched(words[1:])
    raise Ended


def where(shell: Shell, words: Sequence[str]) -> int:
    """``command -v NAME`` and ``which NAME``, with which clients look for a shell."""
    names = words[1:] if words[0] == "which" else words[2:]
    if not names or (words[0] == "command" and words[1] != "-v"):
        raise Unsupported(words[0])
    code = 0
    for name in names:
        found = _found(shell, name, own=words[0] == "command")
        if found:
            shell.say(f"{found}\n")
        elif not shell.assumes:
            raise Unknown
        else:
            code = 1
    return code


def _found(shell: Shell, name: str, *, own: bool) -> str:
    """The path of a program, or the name of what a shell has by itself (``own``); empty if there is none."""
    if own and (name in _OWN or name in shell.functions):
        return name
    if "/" not in name:
        return f"/bin/{name}" if shell.has(name) else ""
    is_there = shell.has_at(shell.place(name)) if shell.assumes else shell.has(name)
    return name if is_there else ""


PROGRAMS: Mapping[str, Command] = {
    "true": silent,
    "sync": silent,
    "false": false,
    "sleep": sleep,
    "pwd": pwd,
    "kill": kill,
    "which": where,
}
"""Those that are programs as well."""

BUILT_IN: Mapping[str, Command] = {
    ":": silent,
    "cd": cd,
    "exit": leave,
    "return": give_back,
    "break": leave_loop,
    "continue": leave_loop,
    "export": export,
    "set": set_options,
    "trap": trap,
    "wait": wait,
    "exec": run_other,
    "command": where,
    "[[": file_commands.test,
}
"""Those that are not."""
_OWN = frozenset((*BUILT_IN, "echo", "printf", "test", "[", "true", "false", "pwd", "kill"))
"""What a shell has by itself."""
