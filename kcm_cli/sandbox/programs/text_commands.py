"""Commands that write their words, or some of the lines that they read from files or standard input.

Each takes the shell that runs it and its words, and returns its exit code.
"""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence

from kcm_cli.sandbox.programs.arithmetic import DividedByZero, evaluate
from kcm_cli.sandbox.programs.errors import Refused, Unknown, Unsupported
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER
from kcm_cli.sandbox.programs.shell import Shell, options

_PER_COMPARISON, _PER_LINE = 1 / 64, 4
"""Their cost (see ``filesystem.Work``)."""
_MOST_ALTERNATIVES = 16
_PLAIN = re.compile(r"\^?[\w ./:=@,%#\"'<>-]*\$?")
"""Patterns that are matched in linear time."""
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{0,2}|0[0-7]{0,3}|[1-7][0-7]{0,2}|.)", re.ASCII | re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "\\": "\\",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%[sd%]")
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_MOST_NUMBERS = 10_000
_DATE = "%a %b %e %H:%M:%S UTC %Y"
_LETTER, _LETTERS = re.compile("%(.?)"), frozenset("aAbBdDeFHIjmMpRSTuyYzZs%")


def echo(shell: Shell, words: Sequence[str]) -> int:
    """``echo`` with ``-n``, ``-e`` and ``-E``, as of bash and busybox."""
    words, letters = words[1:], ""
    while words and re.fullmatch(r"-[neE]+", words[0]) is not None:
        letters, words = letters + words[0][1:], words[1:]
    text, end = " ".join(words), "" if "n" in letters else "\n"
    if "e" in letters:
        text, stop = _unescaped(text)
        end = "" if stop else end
    if text or end:
        shell.say(text + end)
    return 0


def _unescaped(text: str) -> tuple[str, bool]:
    """A text with escapes interpreted, and whether one of them (``\\c``) ends the output."""
    found: list[str] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        found.append(text[at : match.start()])
        at = match.end()
        letter, digits = match[1][:1], match[1][1:]
        if letter == "c":
            return "".join(found), True
        if letter == "x" and digits:
            found.append(_byte(int(digits, 16)))
        elif letter in "01234567":
            digits = digits if letter == "0" else letter + digits
            found.append(_byte(int(digits or "0", 8) % 256))
        else:
            found.append(_ESCAPES.get(letter, match[0]))
    found.append(text[at:])
    return "".join(found), False


def _byte(number: int) -> str:
    return bytes([number]).decode("utf-8", "surrogateescape")


def printf(shell: Shell, words: Sequence[str]) -> int:
    """``printf`` with ``%s``, ``%d`` and ``%%``. The format is used again while there are arguments."""
    if not words[1:] or words[1].startswith("-"):
        raise Unknown
    (form, stop), arguments = _unescaped(words[1].replace('\\"', '"')), list(words[2:])
    if stop or "%" in _DIRECTIVE.sub("", form):
        raise Unknown

    def directive(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        text = arguments.pop(0) if arguments else "" if match[0] == "%s" else "0"
        if match[0] == "%d" and not _WHOLE.fullmatch(text):
            raise Unknown
        return text

    while True:
        left = len(arguments)
        shell.say(_DIRECTIVE.sub(directive, form))
        if not arguments or len(arguments) == left:
            return 0


def seq(shell: Shell, words: Sequence[str]) -> int:
    shell.say("".join(f"{number}\n" for number in numbers(words[1:])))
    return 0


def numbers(words: Sequence[str]) -> range:
    """The whole numbers that ``seq`` writes. Raises Unknown."""
    if not 1 <= len(words) <= 3 or not all(map(_WHOLE.fullmatch, words)):
        raise Unknown
    first, step, last = (1, 1, int(words[0])) if len(words) == 1 else (int(words[0]), 1, int(words[-1]))
    step = int(words[1]) if len(words) == 3 else step
    if step == 0:
        raise Unknown
    found = range(first, last + (1 if step > 0 else -1), step)
    if len(found) > _MOST_NUMBERS:
        raise Unknown
    return found


def date(shell: Shell, words: Sequence[str]) -> int:
    """``date`` in UTC, with a format of common letters."""
    form = _DATE
    for word in words[1:]:
        if word.startswith("+"):
            form = word[1:]
        elif word[:1].isalpha():
            shell.say(f"date: invalid date '{word}'\n", error=True)
            return 1
        elif word not in ("-u", "--utc"):
            raise Unknown
    now = shell.now()
    if now is None or set(_LETTER.findall(form)) - _LETTERS:
        return shell.output_unknown()
    text = _LETTER.sub(lambda match: str(int(now.timestamp())) if match[1] == "s" else now.strftime(match[0]), form)
    shell.say(f"{text}\n")
    return 0


def grep(shell: Shell, words: Sequence[str]) -> int:
    """``grep`` with patterns of characters, dots, anchors and alternatives."""
    letters, names = options(words, "EFvqic")
    if not names:
        raise Unknown
    if len(names) > 2:
        raise Unsupported("grep of several files")
    matches, (text, code) = _pattern(names[0], letters), _text(shell, words[0], names[1:])
    if code:
        return 2
    shell.fs.work.spend(len(text) * len(names[0]) * _PER_COMPARISON)
    lines = [line for line in _lines(shell, text) if (matches.search(line) is None) == ("v" in letters)]
    if "c" in letters:
        shell.say(f"{len(lines)}\n")
    elif "q" not in letters:
        _say(shell, [f"{line}\n" for line in lines])
    return 0 if lines else 1


def _pattern(text: str, letters: str) -> re.Pattern[str]:
    flags = re.IGNORECASE if "i" in letters else 0
    if "F" in letters:
        return re.compile(re.escape(text), flags)
    if "E" in letters:
        whole = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        alternatives = whole.split("|")
    else:
        alternatives = text.split("\\|")
    if len(alternatives) > _MOST_ALTERNATIVES or not all(map(_PLAIN.fullmatch, alternatives)):
        raise Unknown
    return re.compile("|".join(alternatives), flags)


def sort(shell: Shell, words: Sequence[str]) -> int:
    """``sort`` by bytes, with ``-u`` and ``-r``."""
    letters, names = options(words, "ur")
    text, code = _text(shell, words[0], names)
    if code:
        raise Unknown  # it is 1 or 2
    lines = _lines(shell, text)
    lines.sort(key=lambda line: line.encode("utf-8", "surrogateescape"), reverse="r" in letters)
    shown = list(dict.fromkeys(lines)) if "u" in letters else lines
    _say(shell, [f"{line}\n" for line in shown])
    return 0


def head(shell: Shell, words: Sequence[str]) -> int:
    """``head`` with ``-n`` or ``-c``; with a minus sign without the last ones."""
    unit, sign, number, names = _counted(words)
    if not names and shell.input is None and shell.has_long_input:
        return shell.output_unknown()
    text, code = _text(shell, words[0], names)
    parts = _bytes(text) if unit == "c" else _ended_lines(shell, text)
    _say(shell, parts[: max(0, len(parts) - number) if sign == "-" else number])
    return code


def tail(shell: Shell, words: Sequence[str]) -> int:
    """``tail`` with ``-n`` or ``-c``; with a plus sign from that one on. ``tail -f /dev/null`` waits forever."""
    if sorted(words[1:]) in (["-F", "/dev/null"], ["-f", "/dev/null"]):
        shell.rest(math.inf)
    unit, sign, number, names = _counted(words)
    text, code = _text(shell, words[0], names)
    parts = _bytes(text) if unit == "c" else _ended_lines(shell, text)
    _say(shell, parts[max(0, number - 1 if sign == "+" else len(parts) - number) :])
    return code


def _counted(words: Sequence[str]) -> tuple[str, str, int, list[str]]:
    """``n`` for lines or ``c`` for bytes, the sign of their number, the number, and the files."""
    match = _COUNTED.match(" ".join(words[1:3]))
    if match is None:
        return "n", "", 10, list(words[1:])
    unit, space, sign, number = match.groups()
    return unit or "n", sign, int(number), list(words[3 if space else 2 :])


_COUNTED = re.compile(r"-(?:([nc])( ?))?([+-]?)(\d{1,9})(?!\S)", re.ASCII)


def wc(shell: Shell, words: Sequence[str]) -> int:
    """``wc`` with one of ``-l``, ``-w``, ``-c``, of one file."""
    option = words[1] if words[1:] else ""
    if option not in ("-l", "-w", "-c") or words[3:]:
        raise Unsupported("wc with these words")
    text, code = _text(shell, words[0], words[2:])
    if not code:
        counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(_bytes(text))}
        shell.say(" ".join([str(counts[option]), *words[2:]]) + "\n")
    return code


def expr(shell: Shell, words: Sequence[str]) -> int:
    """``expr`` of two numbers, as scripts of indexed Jobs have it."""
    if len(words) != 4 or words[2] not in ("+", "-", "*", "/", "%") or not all(map(_INTEGER.fullmatch, words[1::2])):
        raise Unsupported("expr with these words")
    try:
        found = evaluate(" ".join(words[1:]), lambda _: "")
    except DividedByZero:
        shell.say("expr: division by zero\n", error=True)
        return 2
    shell.say(f"{found}\n")
    return int(found == 0)


_INTEGER = re.compile(r"-?\d{1,18}", re.ASCII)


def encode(shell: Shell, words: Sequence[str]) -> int:
    """``base64`` with ``-d`` and ``-w 0``."""
    options, width, rest = "", 76, iter(words[1:])
    names: list[str] = []
    for word in rest:
        if word.startswith("-w"):
            text = word[2:] or next(rest, "")
            if re.fullmatch(r"\d{1,4}", text, re.ASCII) is None:
                raise Unknown
            width = int(text)
        elif word in ("-d", "--decode", "-D"):
            options = "d"
        elif word.startswith("-") and word != "-":
            raise Unknown
        else:
            names.append(word)
    given, code = _text(shell, words[0], names)
    data = given.encode("utf-8", "surrogateescape")
    if code:
        return code
    if options:
        try:
            found = b64decode(b"".join(data.split()), validate=True)
        except ValueError:
            shell.say("base64: invalid input\n", error=True)
            return 1
        _say(shell, [found.decode("utf-8", "surrogateescape")])
        return 0
    text = b64encode(data).decode()
    lines = [text[at : at + width] for at in range(0, len(text), width)] if width else [text]
    _say(shell, ["\n".join(lines) + ("\n" if width and text else "")])
    return 0


def tee(shell: Shell, words: Sequence[str]) -> int:
    """``tee``, with ``-a``."""
    letters, names = options(words, "a")
    text = _input(shell)
    for name in names:
        path = shell.place(name)
        if path.startswith("/dev/") or shell.fs.is_folder(path):
            raise Unknown
        before = shell.fs.texts.get(path, "") if letters else ""
        try:
            shell.fs.make(shell.fs.writable(path, name), None if before is None else f"{before}{text}")
        except Refused:  # tee continues with the other files
            raise Unknown from None
    _say(shell, [text])
    return 0


def _text(shell: Shell, command: str, names: Sequence[str]) -> tuple[str, int]:
    """The text of the files that can be read, or without names of the standard input, and the exit code. Errors are
    written. Raises Unknown."""
    if not names or list(names) == ["-"]:
        return _input(shell), 0
    found: list[str] = []
    for name, path in shell.paths(names):
        try:
            found.append(shell.fs.content(path))
            shell.fs.work.spend(len(found[-1]) * PER_CHARACTER)
        except OSError as error:
            why = "No such file or directory" if isinstance(error, FileNotFoundError) else "Is a directory"
            shell.say(f"{command.rpartition('/')[2]}: {name}: {why}\n", error=True)
    return "".join(found), 0 if len(found) == len(names) else 1


def _input(shell: Shell) -> str:
    if shell.input is None:
        raise Unknown
    text, shell.input = shell.input, ""
    shell.fs.work.spend(len(text) * PER_CHARACTER)
    return text


def _lines(shell: Shell, text: str) -> list[str]:
    shell.fs.work.spend(text.count("\n") * _PER_LINE)
    return text.removesuffix("\n").split("\n") if text else []


def _ended_lines(shell: Shell, text: str) -> list[str]:
    """The lines with their line ends, which the last one may lack."""
    shell.fs.work.spend(text.count("\n") * _PER_LINE)
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _say(shell: Shell, parts: Iterable[str] | bytes) -> None:
    if text := parts.decode("utf-8", "surrogateescape") if isinstance(parts, bytes) else "".join(parts):
        shell.say(text)


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "echo": echo,
    "printf": printf,
    "seq": seq,
    "date": date,
    "grep": grep,
    "sort": sort,
    "base64": encode,
    "tail": tail,
    "head": head,
    "wc": wc,
    "expr": expr,
    "tee": tee,
}
