"""Commands that list, create, move, delete and test files.

Each takes the shell that runs it and its words, and returns an exit code.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Protocol

from kcm_cli.sandbox.nodes.filesystem import FileSystem, Refused
from kcm_cli.sandbox.nodes.shell import Unknown

_ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom")


class Shell(Protocol):
    """The shell that runs a command.

    input: the rest of the command's standard input; None if it is unknown.
    """

    fs: FileSystem
    input: str | None

    def now(self) -> datetime | None:
        """Return the time, or None if it is unknown."""

    def output_unknown(self) -> int:
        """Succeed with unknown output."""

    def say(self, text: str, *, error: bool = False) -> None:
        """Write output. Raises Unknown if there is too much of it."""

    def place(self, path: str) -> str:
        """Return the absolute path, or the path as given if the working directory is unknown. Raises Unknown."""

    def paths(self, words: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Yield paths as written, each with its absolute path. Raises Unknown."""


def touch(shell: Shell, words: Sequence[str]) -> int:
    if any("$" in word for word in words):
        raise Unknown
    for word in words[1:]:
        if not word.startswith("-"):
            path = shell.place(word)
            if not shell.fs.is_folder(path):
                shell.fs.make(shell.fs.writable(path, word), shell.fs.texts.get(path, ""))
    return 0


def mv(shell: Shell, words: Sequence[str]) -> int:
    """Move files. Unknown files are assumed to exist."""
    return _carry(shell, words, moves=True)


def cp(shell: Shell, words: Sequence[str]) -> int:
    return _carry(shell, words, moves=False)


def _carry(shell: Shell, words: Sequence[str], *, moves: bool) -> int:
    options = "".join(word[1:] for word in words[1:] if word.startswith("-"))
    names = [word for word in words[1:] if not word.startswith("-")]
    if len(names) != 2 or set(options) - set("fvp"):
        raise Unknown
    ((shown, source),) = shell.paths(names[:1])
    ((shown_to, target),) = shell.paths(names[1:])
    if names[1].endswith("/") or shell.fs.is_folder(target) or target == "/tmp":
        target = shell.place(f"{target}/{source.rpartition('/')[2]}")
        shown_to = f"{shown_to.rstrip('/')}/{source.rpartition('/')[2]}"
    if shell.fs.is_folder(source) or source == "/":
        raise Unknown
    try:
        text: str | None = shell.fs.content(source)
    except IsADirectoryError:
        raise Unknown from None
    except FileNotFoundError:
        shell.say(
            f"{words[0]}: can't {'rename' if moves else 'stat'} '{shown}': No such file or directory\n", error=True
        )
        return 1
    except Unknown:
        text = None
    if target == source:
        if not moves:
            shell.say(f"cp: '{shown}' and '{shown_to}' are the same file\n", error=True)
        return 0 if moves else 1
    shell.fs.make(shell.fs.writable(target, shown_to), text)
    if moves:
        shell.fs.writable(source, shown)
        shell.fs.remove(source)
    if "v" in options:
        shell.say(f"{'renamed ' if moves else ''}'{shown}' -> '{shown_to}'\n")
    return 0


def dd(shell: Shell, words: Sequence[str]) -> int:
    """Create a file. Only ``dd if=/dev/zero of=FILE bs=1 count=1`` and the like are known."""
    values = dict(word.partition("=")[::2] for word in words[1:])
    if values.keys() - {"if", "of", "bs", "count", "conv"} or values.get("if") not in _ENDLESS or "of" not in values:
        raise Unknown
    ((shown, path),) = shell.paths([values["of"]])
    shell.fs.make(shell.fs.writable(path, shown), None)
    return 0


def mkdir(shell: Shell, words: Sequence[str]) -> int:
    if any("$" in word for word in words):
        raise Unknown
    options = {word for word in words[1:] if word.startswith("-")}
    if options - {"-p", "-v", "-pv", "-vp", "--parents"}:
        raise Unknown
    parents = bool(options - {"-v"})
    for word in words[1:]:
        path = shell.place(word)
        if word not in options and path.startswith("/"):
            if not parents and (path in shell.fs.texts or shell.fs.is_folder(path)):
                raise Refused(f"{word}: File exists")
            shell.fs.texts.setdefault(f"{shell.fs.writable(path, word, parents=parents)}/", "")
    return 0


def rm(shell: Shell, words: Sequence[str]) -> int:
    """Delete known files. Files that are not known stay unknown."""
    options = "".join(word[1:] for word in words[1:] if word.startswith("-"))
    if set(options) - set("rRfv"):
        raise Unknown
    code = 0
    for word, path in shell.paths([word for word in words[1:] if not word.startswith("-")]):
        inside = [each for each in shell.fs.texts if each.startswith(f"{path}/")]
        shell.fs.work.spend(len(shell.fs.texts))
        if path in shell.fs.texts or f"{path}/" in inside or (inside and path not in shell.fs.scratch):
            shell.fs.writable(path, word)
            if path not in shell.fs.texts and not {"r", "R"} & set(options):
                shell.say(f"rm: {word}: is a directory\n", error=True)
                code = 1
                continue
            for each in (path, *inside):
                shell.fs.remove(each)
        elif "f" not in options:
            if not shell.fs.in_scratch(path) and path not in shell.fs.gone:
                raise Unknown
            shell.say(f"rm: can't remove '{word}': No such file or directory\n", error=True)
            code = 1
        elif path in shell.fs.scratch or (shell.fs.volumes is not None and shell.fs.volumes.read_only(path)):
            raise Unknown
    return code


def cat(shell: Shell, words: Sequence[str]) -> int:
    code = 0
    if words[1:] in ([], ["-"]) and shell.input is not None:
        shell.say(shell.input)
        shell.input = ""
        return code
    for word, path in shell.paths(words[1:]):
        try:
            shell.say(shell.fs.content(path))
        except IsADirectoryError:
            shell.say(f"cat: {word}: Is a directory\n", error=True)
            code = 1
        except FileNotFoundError:
            shell.say(f"cat: {word}: No such file or directory\n", error=True)
            code = 1
    return code


def ls(shell: Shell, words: Sequence[str]) -> int:
    code = 0
    paths = list(shell.paths([word for word in words[1:] if word != "-1"] or ["."]))
    for word, path in paths:
        try:
            names = [name for name in shell.fs.names(path) if not name.startswith(".")]
        except NotADirectoryError:
            names = [word]
        except FileNotFoundError:
            shell.say(f"ls: {word}: No such file or directory\n", error=True)
            code = 1
            continue
        if len(paths) > 1 and names != [word]:
            shell.say(f"{word}:\n")
        shell.say("".join(f"{name}\n" for name in names))
    return code


def test(shell: Shell, words: Sequence[str]) -> int:
    return 0 if _holds(shell, words) else 1


def _holds(shell: Shell, words: Sequence[str]) -> bool:
    closing = {"[": "]", "[[": "]]"}.get(words[0])
    if closing is not None and words[-1] != closing:
        raise Unknown
    rest = list(words[1:-1] if closing is not None else words[1:])
    negated = bool(rest) and rest[0] == "!"
    rest = rest[1:] if negated else rest
    if any("$" in word for word in rest):
        raise Unknown
    match rest:
        case ["-e" | "-f" | "-r" | "-s" | "-d" as option, path]:
            holds = shell.fs.is_there(option, shell.place(path))
        case ["-n", text]:
            holds = bool(text)
        case ["-z", text]:
            holds = not text
        case [left, "=" | "==", right]:
            holds = left == right
        case [left, "!=", right]:
            holds = left != right
        case [left, "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge" as name, right]:
            holds = _compares(left, name, right)
        case _:
            raise Unknown
    return holds != negated


def _compares(left: str, name: str, right: str) -> bool:
    if not all(re.fullmatch(r"-?\d{1,18}", number, re.ASCII) for number in (left, right)):
        raise Unknown
    a, b = int(left), int(right)
    return {"-eq": a == b, "-ne": a != b, "-lt": a < b, "-le": a <= b, "-gt": a > b, "-ge": a >= b}[name]


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "touch": touch,
    "mkdir": mkdir,
    "rm": rm,
    "mv": mv,
    "cp": cp,
    "dd": dd,
    "cat": cat,
    "ls": ls,
    "test": test,
    "[": test,
}
