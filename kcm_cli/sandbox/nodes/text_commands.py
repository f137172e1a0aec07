"""Commands that write their words, or some of the lines that they read from files or standard input.

Each takes the shell that runs it and its words, and returns its exit code.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from gzip import compress

from kcm_cli.machinery.times import parse_time
from kcm_cli.sandbox.nodes.file_commands import Shell
from kcm_cli.sandbox.nodes.filesystem import PER_CHARACTER, Refused
from kcm_cli.sandbox.nodes.shell import Unknown

_PER_COMPARISON, _PER_LINE = 1 / 64, 4
"""Their cost (see ``filesystem.Work``)."""
_MOST_ALTERNATIVES = 16
_PLAIN = re.compile(r"\^?[\w ./:=@,%#\"'<>-]*\$?")
"""Patterns that are matched in linear time."""
_ESCAPED, _ESCAPES = re.compile(r"\\([nt\\])"), {"n": "\n", "t": "\t", "\\": "\\"}
_DIRECTIVE = re.compile(r"%(-?\d{0,3})([sdi])|%%", re.ASCII)
_WHOLE = re.compile(r"-?\d{1,9}", re.ASCII)
_MOST_NUMBERS = 10_000
_DATE = "%a %b %e %H:%M:%S UTC %Y"
_LETTER, _LETTERS = re.compile("%(.?)"), frozenset("aAbBdDeFHIjmMpRSTuyYzZs%")
_COUNT = re.compile(r"\d{1,9}", re.ASCII)


def echo(shell: Shell, words: Sequence[str]) -> int:
    words, end = words[1:], "\n"
    if words and words[0] == "-n":
        words, end = words[1:], ""
    shell.say(" ".join(words) + end)
    return 0


def printf(shell: Shell, words: Sequence[str]) -> int:
    """``printf`` with ``%s``, ``%d`` and ``%%``. The format is used again while there are arguments."""
    if not words[1:] or words[1].startswith("-") or "\\" in _ESCAPED.sub("", words[1]):
        raise Unknown
    form, arguments = _ESCAPED.sub(lambda match: _ESCAPES[match[1]], words[1]), list(words[2:])
    if "%" in _DIRECTIVE.sub("", form):
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
    if set(options) - set("EFvqich"):
        raise Unknown
    if not patterns:
        patterns, names = names[:1], names[1:]
    if len(patterns) != 1 or len(names) > 1:
        raise Unknown
    matches = _pattern(patterns[0], options)
    text = _text(shell, names)
    shell.fs.work.spend(len(text) * len(patterns[0]) * _PER_COMPARISON)
    lines = [line for line in _lines(shell, text) if (matches.search(line) is None) == ("v" in options)]
    if "q" not in options:
        shown = [str(len(lines))] if "c" in options else lines
        _say(shell, [f"{line}\n" for line in shown])
    return 0 if lines else 1


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
    """``head -n``."""
    count, names = _count(words)
    _say(shell, _ended_lines(shell, _text(shell, names))[:count])
    return 0


def tail(shell: Shell, words: Sequence[str]) -> int:
    """``tail -n``."""
    count, names = _count(words)
    lines = _ended_lines(shell, _text(shell, names))
    _say(shell, lines[max(0, len(lines) - count) :])
    return 0


def wc(shell: Shell, words: Sequence[str]) -> int:
    """``wc -l``."""
    options, names = _options(words)
    if options != "l" or len(names) > 1:
        raise Unknown
    count = _text(shell, names).count("\n")
    shell.say(f"{count} {names[0]}\n" if names else f"{count}\n")
    return 0


def tee(shell: Shell, words: Sequence[str]) -> int:
    """``tee``, with ``-a``."""
    options, names = _options(words)
    if set(options) - set("a") or any(set("$*?[") & set(name) for name in names):
        raise Unknown
    text = _text(shell, ())
    for name in names:
        path = shell.place(name)
        if not path.startswith("/") or path.startswith("/dev/") or shell.fs.is_folder(path):
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


def _count(words: Sequence[str]) -> tuple[int, list[str]]:
    """The requested number of lines, and the files."""
    rest = list(words[1:])
    count = "10"
    if rest and rest[0] == "-n":
        count, rest = "".join(rest[1:2]), rest[2:]
    elif rest and rest[0].startswith("-"):
        count, rest = rest[0].removeprefix("-n").removeprefix("-"), rest[1:]
    if not _COUNT.fullmatch(count) or len(rest) > 1:
        raise Unknown
    return int(count), rest


def _text(shell: Shell, names: Sequence[str]) -> str:
    """The text of files, or of standard input. Raises Unknown, also for missing files and names with wildcards."""
    if not names or names == ["-"]:
        if shell.input is None:
            raise Unknown
        text, shell.input = shell.input, ""
    else:
        try:
            found = dict(shell.paths(names))
            if found.keys() != set(names):
                raise Unknown
            text = "".join([shell.fs.content(found[name]) for name in names])
        except OSError:
            raise Unknown from None
    shell.fs.work.spend(len(text) * PER_CHARACTER)
    return text


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
    "tee": tee,
}
