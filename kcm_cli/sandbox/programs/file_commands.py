"""Commands that list, create, move, delete and test files.

Each takes the shell that runs it and its words, and returns an exit code.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from kcm_cli.sandbox.programs.errors import Refused, Unknown, Unsupported
from kcm_cli.sandbox.programs.shell import Shell, options

_ENDLESS = ("/dev/zero", "/dev/random", "/dev/urandom")


def touch(shell: Shell, words: Sequence[str]) -> int:
    for word in options(words, "am")[1]:
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
    letters, names = options(words, "fvp")
    if len(names) != 2:
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
    if "v" in letters:
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
    letters, names = options(words, "pv")
    parents = "p" in letters
    for word in names:
        path = shell.place(word)
        if path.startswith("/"):
            if not parents and (path in shell.fs.texts or shell.fs.is_folder(path)):
                raise Refused(f"{word}: File exists")
            shell.fs.texts.setdefault(f"{shell.fs.writable(path, word, parents=parents)}/", "")
    return 0


def rm(shell: Shell, words: Sequence[str]) -> int:
    """Delete known files. Files that are not known stay unknown."""
    letters, names = options(words, "rRfv")
    code = 0
    for word, path in shell.paths(names):
        inside = [each for each in shell.fs.texts if each.startswith(f"{path}/")]
        shell.fs.work.spend(len(shell.fs.texts))
        if path in shell.fs.texts or f"{path}/" in inside or (inside and path not in shell.fs.scratch):
            shell.fs.writable(path, word)
            if path not in shell.fs.texts and not {"r", "R"} & set(letters):
                shell.say(f"rm: {word}: is a directory\n", error=True)
                code = 1
                continue
            for each in (path, *inside):
                shell.fs.remove(each)
        elif "f" not in letters:
            if not shell.fs.in_scratch(path) and path not in shell.fs.gone:
                raise Unknown
            shell.say(f"rm: can't remove '{word}': No such file or directory\n", error=True)
            code = 1
        elif path in shell.fs.scratch or (shell.fs.volumes is not None and shell.fs.volumes.read_only(path)):
            raise Unknown
    return code


def cat(shell: Shell, words: Sequence[str]) -> int:
    code = 0
    if words[1:] in ([], ["-"]):
        if shell.input is None:
            if not shell.has_long_input:
                raise Unknown
            return shell.output_unknown()
        if shell.input:
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
    """``ls`` with ``-1``, ``-a``, ``-A``, ``-d``."""
    letters, names = options(words, "1aAd")
    code = 0
    paths = list(shell.paths(names or ["."]))
    for word, path in paths:
        try:
            found = _listed(shell, word, path, letters)
        except FileNotFoundError:
            shell.say(f"ls: {word}: No such file or directory\n", error=True)
            code = 1
            continue
        if len(paths) > 1 and found != [word]:
            shell.say(f"{word}:\n")
        shell.say("".join(f"{name}\n" for name in found))
    return code


def find(shell: Shell, words: Sequence[str]) -> int:
    """``find PATH… -type f -name '*'`` in folders whose files are all known, as Ansible lists the files of a pod."""
    first = next((at for at, word in enumerate(words[1:], 1) if word[:1] in "-(!"), len(words))
    if words[first:] and list(words[first:]) not in (["-type", "f"], ["-type", "f", "-name", "*"]):
        raise Unsupported(f"find {' '.join(words[first:])}")
    code = 0
    for word, path in shell.paths(words[1:first] or ["."]):
        if not shell.fs.is_there("-e", path):
            shell.say(f"find: {word}: No such file or directory\n", error=True)
            code = 1
            continue
        for name, place, is_folder in shell.fs.below(word, path):
            if not (place in shell.fs.texts or (is_folder and shell.fs.is_folder(place))):
                raise Unknown  # the files of ConfigMaps and Secrets are symbolic links
            if not (is_folder and words[first:]):
                shell.say(f"{name}\n")
    return code


def _listed(shell: Shell, word: str, path: str, letters: str) -> list[str]:
    """Raises FileNotFoundError, Unknown."""
    try:
        names = list(shell.fs.names(path))
    except NotADirectoryError:
        return [word]
    except Unknown:
        if (is_program := shell.has_at(path)) is None:
            raise
        if not is_program:
            raise FileNotFoundError from None
        return [word]
    if "d" in letters:
        return [word]
    if set(letters) & {"a", "A"} and not shell.fs.is_folder(path):
        raise Unknown  # folders of ConfigMaps and Secrets have "..data", and one named after a time
    if "a" in letters:
        return [".", "..", *names]
    return names if "A" in letters else [name for name in names if not name.startswith(".")]


def change_mode(shell: Shell, words: Sequence[str]) -> int:
    """``chmod``, ``chown`` and ``chgrp`` of known files: permissions are not simulated."""
    _, names = options(words, "Rvfh")
    code = 0
    for word, path in shell.paths(names[1:]):
        if not shell.fs.is_there("-e", path):
            shell.say(f"{words[0]}: {word}: No such file or directory\n", error=True)
            code = 1
        else:
            shell.fs.writable(path, word)
    return code


def test(shell: Shell, words: Sequence[str]) -> int:
    try:
        return 0 if _holds(shell, words) else 1
    except Refused as refused:
        shell.say(f"{words[0]}: {refused}\n", error=True)
        return 2


def _holds(shell: Shell, words: Sequence[str]) -> bool:
    closing = {"[": "]", "[[": "]]"}.get(words[0])
    if closing is not None and words[-1] != closing:
        raise Unknown
    rest = list(words[1:-1] if closing is not None else words[1:])
    negated = bool(rest) and rest[0] == "!"
    rest = rest[1:] if negated else rest
    match rest:
        case ["-e" | "-f" | "-r" | "-s" | "-d" as option, path]:
            holds = _is_there(shell, option, shell.place(path))
        case ["-w" | "-x" as option, path]:
            holds = _allows(shell, option, shell.place(path))
        case ["-h" | "-L", path] if not shell.fs.may_be_there(shell.place(path)):
            holds = False
        case []:
            holds = False
        case ["-n", text] | [text]:
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
            raise Unsupported(f"{words[0]} with these words")
    return holds != negated


def _is_there(shell: Shell, option: str, path: str) -> bool:
    """Whether there is a file, also if it is a program of the image."""
    try:
        return shell.fs.is_there(option, path)
    except Unknown:
        is_program = shell.has_at(path)
        if is_program is None:
            raise
        return is_program and option != "-d"


def _allows(shell: Shell, option: str, path: str) -> bool:
    """Whether a file may be written, a folder entered, or a program of the image executed. Whether another file may be
    is not known."""
    if not _is_there(shell, "-e", path):
        return False
    if option == "-w":
        return shell.fs.volumes is None or not shell.fs.volumes.read_only(path)
    if _is_there(shell, "-d", path) or (path not in shell.fs.texts and shell.has_at(path)):
        return True
    raise Unknown


def _compares(left: str, name: str, right: str) -> bool:
    for number in (left, right):
        if re.fullmatch(r"\s*[-+]?\d{1,18}\s*", number, re.ASCII) is None:
            raise Refused(f"{number[:100]}: bad number")
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
    "find": find,
    "ls": ls,
    "chmod": change_mode,
    "chown": change_mode,
    "chgrp": change_mode,
    "test": test,
    "[": test,
}
