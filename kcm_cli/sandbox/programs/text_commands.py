"""Commands that write their words, or some of the lines that they read from files or standard input.

Each takes the shell that runs it and its words, and returns its exit code.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from gzip import compress
from hashlib import new

from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.programs.errors import Refused, Unknown
from kcm_cli.sandbox.programs.file_commands import Shell
from kcm_cli.sandbox.programs.filesystem import PER_CHARACTER

_PER_COMPARISON, _PER_LINE = 1 / 64, 4
"""Their cost (see ``filesystem.Work``)."""
_MOST_ALTERNATIVES = 16
_PLAIN = re.compile(r"\^?[\w ./:=@,%#\"'<>-]*\$?")
"""Patterns that are matched in linear time."""
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{0,2}|0[0-7]{0,3}|[1-7][0-7]{0,2}|.)", re.ASCII | re.DOTALL)
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "e": "\x1b", "\\": "\\",
}  # fmt: skip
_DIRECTIVE = re.compile(r"%(-?\d{0,3})([sdi])|%%", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_MOST_NUMBERS = 10_000
_DATE = "%a %b %e %H:%M:%S UTC %Y"
_LETTER, _LETTERS = re.compile("%(.?)"), frozenset("aAbBdDeFHIjmMpRSTuyYzZs%")
_COUNT = re.compile(r"\d{1,9}", re.ASCII)


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


def _unescaped(text: str, *, octal: bool = False) -> tuple[str, bool]:
    """A text with escapes interpreted, and whether one of them (``\\c``) ends the output. octal: numbers need not
    begin with 0."""
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
        elif letter == "0" or (octal and letter in "1234567"):
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
    (form, stop), arguments = _unescaped(words[1].replace('\\"', '"'), octal=True), list(words[2:])
    if stop or "%" in _DIRECTIVE.sub("", form):
        raise Unknown

    def directive(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        text = arguments.pop(0) if arguments else "" if match[2] == "s" else "0"
        if match[2] == "s":
            return f"%{match[1].replace('0', '', 1) if match[1].startswith('0') else match[1]}s" % text
        if not _WHOLE.fullmatch(text):
            raise Unknown
        return f"%{match[1]}d" % int(text)

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


def uptime(shell: Shell, _: Sequence[str]) -> int:
    """``uptime`` of an idle machine that has started with the pod."""
    now, since = shell.now(), shell.fs.volumes and shell.fs.volumes.created
    if now is None or not since:
        return shell.output_unknown()
    days, minutes = divmod(int((now - parse_time(since)).total_seconds() / 60), 24 * 60)
    up = f"{minutes // 60:2}:{minutes % 60:02}" if minutes >= 60 else f"{minutes} min"
    up = f"{days} day{'s' if days > 1 else ''}, {up}" if days else up
    shell.say(f" {now:%H:%M:%S} up {up},  0 users,  load average: 0.00, 0.00, 0.00\n")
    return 0


def gzip(shell: Shell, words: Sequence[str]) -> int:
    """``gzip`` of the standard input."""
    if set(words[1:]) - {"-c", "-"}:
        raise Unknown
    data = compress(_text(shell, ()).encode("utf-8", "surrogateescape"), mtime=0)
    shell.say(data.decode("utf-8", "surrogateescape"))
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
    lines = _lines(shell, _text(shell, names))
    lines.sort(key=lambda line: line.encode("utf-8", "surrogateescape"), reverse="r" in options)
    shown = list(dict.fromkeys(lines)) if "u" in options else lines
    _say(shell, [f"{line}\n" for line in shown])
    return 0


def head(shell: Shell, words: Sequence[str]) -> int:
    """``head`` with ``-n`` and ``-c``."""
    unit, sign, count, names = _count(words)
    found, code = _texts(shell, words[0], names)
    for index, (name, text) in enumerate(found):
        parts = _parts(shell, text, unit)
        end = max(0, len(parts) - count) if sign == "-" else count
        _say(shell, [_title(index, name, names), _joined(parts[:end])])
    return code


def tail(shell: Shell, words: Sequence[str]) -> int:
    """``tail`` with ``-n`` and ``-c``; with ``+`` from that line or byte on."""
    unit, sign, count, names = _count(words)
    found, code = _texts(shell, words[0], names)
    for index, (name, text) in enumerate(found):
        parts = _parts(shell, text, unit)
        begin = max(0, count - 1) if sign == "+" else max(0, len(parts) - count)
        _say(shell, [_title(index, name, names), _joined(parts[begin:])])
    return code


def _parts(shell: Shell, text: str, unit: str) -> "list[str] | bytes":
    return text.encode("utf-8", "surrogateescape") if unit == "c" else _ended_lines(shell, text)


def _joined(parts: "list[str] | bytes") -> str:
    return parts.decode("utf-8", "surrogateescape") if isinstance(parts, bytes) else "".join(parts)


def wc(shell: Shell, words: Sequence[str]) -> int:
    """``wc`` with ``-l``, ``-w``, ``-c``."""
    options, names = _options(words)
    if set(options) - set("lwc"):
        raise Unknown
    sums = [0, 0, 0]
    found, code = _texts(shell, words[0], names)
    for name, text in found:
        shell.fs.work.spend(len(text) * PER_CHARACTER * 2)
        counts = [text.count("\n"), len(text.split()), len(text.encode("utf-8", "surrogateescape"))]
        sums = [total + count for total, count in zip(sums, counts, strict=True)]
        shell.say(_counted(counts, options, name))
    if len(names) > 1:
        shell.say(_counted(sums, options, "total"))
    return code


def _counted(counts: Sequence[int], options: str, name: str) -> str:
    chosen = [count for letter, count in zip("lwc", counts, strict=True) if letter in (options or "lwc")]
    if len(chosen) == 1:
        return f"{chosen[0]} {name}\n" if name else f"{chosen[0]}\n"
    return " ".join(f"{count:9}" for count in chosen) + (f" {name}\n" if name else "\n")


def uniq(shell: Shell, words: Sequence[str]) -> int:
    """``uniq`` with ``-c``, ``-d``, ``-u``."""
    options, names = _options(words)
    if set(options) - set("cdu") or len(names) > 1:
        raise Unknown
    counted: list[tuple[str, int]] = []
    for line in _lines(shell, _text(shell, names)):
        if counted and counted[-1][0] == line:
            counted[-1] = (line, counted[-1][1] + 1)
        else:
            counted.append((line, 1))
    shown = [
        (line, count)
        for line, count in counted
        if ("d" not in options or count > 1) and ("u" not in options or count == 1)
    ]
    _say(shell, [f"{count:7} {line}\n" if "c" in options else f"{line}\n" for line, count in shown])
    return 0


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
    for line in _lines(shell, _text(shell, names)):
        if by == "f" and separator not in line:
            found.append(line)
            continue
        fields = line.split(separator) if by == "f" else list(line)
        kept = [field for at, field in enumerate(fields, 1) if any(first <= at <= last for first, last in ranges)]
        found.append((separator if by == "f" else "").join(kept))
    _say(shell, [f"{line}\n" for line in found])
    return 0


def _range(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{0,6})(-?)(\d{0,6})", text, re.ASCII)
    if match is None or not text.strip("-") or (match[3] and not match[2]):
        raise Unknown
    first = int(match[1] or 1)
    return first, int(match[3] or 10**6) if match[2] else first


_SETS = {
    "[:lower:]": "abcdefghijklmnopqrstuvwxyz", "[:upper:]": "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "[:digit:]": "0123456789",
    "[:space:]": " \t\n\r\v\f", "[:blank:]": " \t",
}  # fmt: skip


def tr(shell: Shell, words: Sequence[str]) -> int:
    """``tr`` with ``-d`` and ``-s``."""
    options = ""
    names: list[str] = []
    for word in words[1:]:
        if word.startswith("-") and len(word) > 1 and not names:
            options += word[1:]
        else:
            names.append(word)
    if set(options) - set("ds") or not 1 <= len(names) <= 2 or (len(names) == 1) != bool(options):
        raise Unknown
    text = _text(shell, ())
    source = _set_of(names[0])
    if options == "d":
        found = text.translate(dict.fromkeys(map(ord, source)))
    elif options == "s":
        found = re.sub(f"([{re.escape(source)}])\\1+", r"\1", text)
    else:
        target = _set_of(names[1])
        if not target:
            raise Unknown
        target += target[-1] * (len(source) - len(target))
        table: dict[int, str] = {}
        for old, new in zip(source, target, strict=False):
            table.setdefault(ord(old), new)
        found = text.translate(table)
    _say(shell, [found])
    return 0


def _set_of(text: str) -> str:
    """The characters of a set of ``tr``."""
    for name, letters in _SETS.items():
        text = text.replace(name, letters)
    text, _ = _unescaped(text)
    if "[" in text:
        raise Unknown
    found: list[str] = []
    at = 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            first, last = ord(text[at]), ord(text[at + 2])
            if not 0 <= last - first < 256:
                raise Unknown
            found += map(chr, range(first, last + 1))
            at += 3
        else:
            found.append(text[at])
            at += 1
    return "".join(found)


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


_COMPARING, _COUNTING = frozenset(("=", "!=", "<", ">", "<=", ">=")), frozenset("+-*/%")


def _operation(shell: Shell, left: str, operator: str, right: str) -> str:
    """The result; empty after an error."""
    are_numbers = all(map(_WHOLE.fullmatch, (left, right)))
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
    data = _text(shell, names).encode("utf-8", "surrogateescape")
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


def digest(shell: Shell, words: Sequence[str]) -> int:
    """``sha256sum`` and the like."""
    if any(word.startswith("-") and word != "-" for word in words[1:]):
        raise Unknown
    kind = words[0].rpartition("/")[2].removesuffix("sum")
    found, code = _texts(shell, words[0], words[1:])
    for name, text in found:
        data = text.encode("utf-8", "surrogateescape")
        shell.say(f"{new(kind, data, usedforsecurity=False).hexdigest()}  {name or '-'}\n")
    return code


def tee(shell: Shell, words: Sequence[str]) -> int:
    """``tee``, with ``-a``."""
    options, names = _options(words)
    if set(options) - set("a"):
        raise Unknown
    text = _text(shell, ())
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


def _count(words: Sequence[str]) -> tuple[str, str, int, list[str]]:
    """The unit (``n`` or ``c``), the sign, the number, and the files."""
    unit, text, names, rest = "n", "10", [], iter(words[1:])
    for word in rest:
        if word[:2] in ("-n", "-c"):
            unit, text = word[1], word[2:] or next(rest, "")
        elif re.fullmatch(r"-\d{1,9}", word, re.ASCII) is not None:
            text = word[1:]
        elif word in ("-q", "-s") or not word.startswith("-") or word == "-":
            names += [] if word in ("-q", "-s") else [word]
        else:
            raise Unknown
    sign = text[:1] if text[:1] in ("+", "-") else ""
    if not _COUNT.fullmatch(text[len(sign) :]):
        raise Unknown
    return unit, sign, int(text[len(sign) :]), names


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


def _title(index: int, name: str, names: Sequence[str]) -> str:
    """What ``head`` and ``tail`` write before each of several files."""
    return ("\n" if index else "") + f"==> {name} <==\n" if len(names) > 1 else ""


def _input(shell: Shell) -> str:
    if shell.input is None:
        raise Unknown
    text, shell.input = shell.input, ""
    shell.fs.work.spend(len(text) * PER_CHARACTER)
    return text


def _text(shell: Shell, names: Sequence[str], command: str = "") -> str:
    """The text of files, or of standard input. Raises Unknown, also for missing files."""
    found, code = _texts(shell, command, names)
    if code:
        raise Unknown
    return "".join(text for _, text in found)


def _lines(shell: Shell, text: str) -> list[str]:
    shell.fs.work.spend(text.count("\n") * _PER_LINE)
    return text.removesuffix("\n").split("\n") if text else []


def _ended_lines(shell: Shell, text: str) -> list[str]:
    """The lines with their line ends, which the last one may lack."""
    shell.fs.work.spend(text.count("\n") * _PER_LINE)
    return [line for line in re.split(r"(?<=\n)", text) if line]


def _say(shell: Shell, lines: Iterable[str]) -> None:
    if text := "".join(lines):
        shell.say(text)


COMMANDS: Mapping[str, Callable[[Shell, Sequence[str]], int]] = {
    "echo": echo,
    "printf": printf,
    "seq": seq,
    "date": date,
    "uptime": uptime,
    "gzip": gzip,
    "grep": grep,
    "sort": sort,
    "head": head,
    "wc": wc,
    "uniq": uniq,
    "cut": cut,
    "tr": tr,
    "expr": expr,
    "base64": encode,
    "md5sum": digest,
    "sha1sum": digest,
    "sha256sum": digest,
    "tee": tee,
}
