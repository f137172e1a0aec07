"""Commands that write their words, or some of the lines that they read from files or standard input.

Each takes the shell that runs it and its words, and returns its exit code.
"""

import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence

from kcm_cli.sandbox.programs.errors import Refused, Unknown, Unsupported
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER
from kcm_cli.sandbox.programs.shell import Shell

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
    words, options = words[1:], ""
    while words and re.fullmatch(r"-[neE]+", words[0]) is not None:
        options, words = options + words[0][1:], words[1:]
    text, end = " ".join(words), "" if "n" in options else "\n"
    if "e" in options:
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
    options, names, patterns = "", [], []
    rest = iter(words[1:])
    for word in rest:
        if word == "-e":
            patterns.append(next(rest, ""))
        elif word.startswith("-") and word != "-":
            options += word[1:]
        else:
            names.append(word)
    if set(options) - set("EFvqichnls"):
        raise Unknown
    if not patterns:
        patterns, names = names[:1], names[1:]
    if len(patterns) != 1:
        raise Unknown
    matches, (texts, code), any_line = _pattern(patterns[0], options), _texts(shell, words[0], names), False
    for name, text in texts:
        shell.fs.work.spend(len(text) * len(patterns[0]) * _PER_COMPARISON)
        lines = [
            (number, line)
            for number, line in enumerate(_lines(shell, text), 1)
            if (matches.search(line) is None) == ("v" in options)
        ]
        any_line = any_line or bool(lines)
        title = f"{name}:" if len(names) > 1 and "h" not in options else ""
        if "l" in options:
            _say(shell, [f"{name or '(standard input)'}\n"] if lines else [])
        elif "c" in options:
            _say(shell, [f"{title}{len(lines)}\n"])
        elif "q" not in options:
            _say(shell, [f"{title}{f'{number}:' if 'n' in options else ''}{line}\n" for number, line in lines])
    return 2 if code else 0 if any_line else 1


def _pattern(text: str, options: str) -> re.Pattern[str]:
    flags = re.IGNORECASE if "i" in options else 0
    if "F" in options:
        return re.compile(re.escape(text), flags)
    if "E" in options:
        whole = text[1:-1] if text.startswith("(") and text.endswith(")") else text
        alternatives = whole.split("|")
    else:
        alternatives = text.split("\\|")
    if len(alternatives) > _MOST_ALTERNATIVES or not all(map(_PLAIN.fullmatch, alternatives)):
        raise Unknown
    return re.compile("|".join(alternatives), flags)


def sort(shell: Shell, words: Sequence[str]) -> int:
    """``sort`` by bytes, with ``-u`` and ``-r``."""
    options, names = _options(words)
    if set(options) - set("ur"):
        raise Unknown
    text, code = _text(shell, words[0], names)
    if code:
        raise Unknown  # it is 1 or 2
    lines = _lines(shell, text)
    lines.sort(key=lambda line: line.encode("utf-8", "surrogateescape"), reverse="r" in options)
    shown = list(dict.fromkeys(lines)) if "u" in options else lines
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


def bytes_of_head(words: Sequence[str]) -> int | None:
    """How many bytes of its standard input ``head -c NUMBER`` reads; None for other commands."""
    unit, sign, number, names = _counted(words)
    return number if words[:1] == ["head"] and unit == "c" and not (sign or names) else None


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
    """``wc`` with one of ``-l``, ``-w``, ``-c``."""
    option = words[1] if words[1:] else ""
    if option not in ("-l", "-w", "-c") or words[3:]:
        raise Unsupported("wc with these words")
    found, code = _texts(shell, words[0], words[2:])
    for name, text in found:
        counts = {"-l": text.count("\n"), "-w": len(text.split()), "-c": len(_bytes(text))}
        shell.say(f"{counts[option]} {name}\n" if name else f"{counts[option]}\n")
    return code


def cut(shell: Shell, words: Sequence[str]) -> int:
    """``cut`` with ``-d`` and ``-f``, or ``-c``."""
    separator, chosen, by = "\t", "", "f"
    names: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if word[:2] in ("-d", "-f", "-c", "-b"):
            value = word[2:] or next(rest, "")
            if word[1] == "d":
                separator = value
            else:
                chosen, by = value, word[1]
        elif word.startswith("-") and word != "-":
            raise Unknown
        else:
            names.append(word)
    ranges = [_range(part) for part in chosen.split(",")]
    if len(separator) != 1 or len(names) > 1 or by == "b":
        raise Unknown
    found: list[str] = []
    text, code = _text(shell, words[0], names)
    shell.fs.work.spend(len(text) * len(ranges) * _PER_COMPARISON)
    for line in _lines(shell, text):
        if by == "f" and separator not in line:
            found.append(line)
            continue
        fields = line.split(separator) if by == "f" else list(line)
        kept = [field for at, field in enumerate(fields, 1) if any(first <= at <= last for first, last in ranges)]
        found.append((separator if by == "f" else "").join(kept))
    _say(shell, [f"{line}\n" for line in found])
    return code


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{0,6})(-?)(\d{0,6})", text, re.ASCII)
    if match is None or not text.strip("-") or (match[3] and not match[2]):
        raise Unknown
    first = int(match[1] or 1)
    return first, int(match[3] or 10**6) if match[2] else first


def expr(shell: Shell, words: Sequence[str]) -> int:
    """``expr`` with one operator."""
    match words[1:]:
        case [text]:
            found = text
        case [left, operator, right] if operator in _COMPARING | _COUNTING:
            found = _operation(shell, left, operator, right)
            if not found:
                return 2
        case _:
            raise Unknown
    shell.say(f"{found}\n")
    return 1 if found in ("", "0") else 0


_LONGEST_NUMBER = 18
_INTEGER, _DIGITS = re.compile(r"-?\d{1,18}", re.ASCII), re.compile(r"-?\d+", re.ASCII)
_COMPARING, _COUNTING = frozenset(("=", "!=", "<", ">", "<=", ">=")), frozenset("+-*/%")


def _operation(shell: Shell, left: str, operator: str, right: str) -> str:
    """The result; empty after an error."""
    are_numbers = all(map(_INTEGER.fullmatch, (left, right)))
    if max(len(left), len(right)) > _LONGEST_NUMBER and any(map(_DIGITS.fullmatch, (left, right))):
        raise Unknown
    if operator in _COMPARING:
        a, b = (int(left), int(right)) if are_numbers else (0, 0)
        lesser = a < b if are_numbers else left < right
        equal = a == b if are_numbers else left == right
        holds = {
            "=": equal, "!=": not equal, "<": lesser and not equal, "<=": lesser or equal, ">": not (lesser or equal),
            ">=": not lesser,
        }  # fmt: skip
        return str(int(holds[operator]))
    if not are_numbers or (operator in "/%" and int(right) == 0):
        shell.say("expr: division by zero\n" if are_numbers else "expr: non-numeric argument\n", error=True)
        return ""
    a, b = int(left), int(right)
    quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1) if operator in "/%" else 0
    return str({"+": a + b, "-": a - b, "*": a * b, "/": quotient, "%": a - quotient * b}[operator])


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
    options, names = _options(words)
    if set(options) - set("a"):
        raise Unknown
    text = _input(shell)
    for name in names:
        path = shell.place(name)
        if path.startswith("/dev/") or shell.fs.is_folder(path):
            raise Unknown
        before = shell.fs.texts.get(path, "") if options else ""
        try:
            shell.fs.make(shell.fs.writable(path, name), None if before is None else f"{before}{text}")
        except Refused:  # tee continues with the other files
            raise Unknown from None
    _say(shell, [text])
    return 0


def _options(words: Sequence[str]) -> tuple[str, list[str]]:
    options = "".join(word[1:] for word in words[1:] if word.startswith("-"))
    return options, [word for word in words[1:] if not word.startswith("-")]


def _texts(shell: Shell, command: str, names: Sequence[str]) -> tuple[list[tuple[str, str]], int]:
    """The files that can be read, with their names, and the exit code; without names the standard input. Errors are
    written. Raises Unknown."""
    if not names or list(names) == ["-"]:
        return [("", _input(shell))], 0
    found: list[tuple[str, str]] = []
    for name, path in shell.paths(names):
        try:
            text = shell.fs.content(path)
        except OSError as error:
            why = "No such file or directory" if isinstance(error, FileNotFoundError) else "Is a directory"
            shell.say(f"{command.rpartition('/')[2]}: {name}: {why}\n", error=True)
            continue
        shell.fs.work.spend(len(text) * PER_CHARACTER)
        found.append((name, text))
    return found, 0 if len(found) == len(names) else 1


def _input(shell: Shell) -> str:
    if shell.input is None:
        raise Unknown
    text, shell.input = shell.input, ""
    shell.fs.work.spend(len(text) * PER_CHARACTER)
    return text


def _text(shell: Shell, command: str, names: Sequence[str]) -> tuple[str, int]:
    """The text of files, or of standard input, and the exit code. Errors are written. Raises Unknown."""
    found, code = _texts(shell, command, names)
    return "".join(text for _, text in found), code


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
    "cut": cut,
    "expr": expr,
    "tee": tee,
}
