"""Regular expressions in Go's syntax, run by RE2, whose matching time is linear in the text.

Guaranteed: what Go rejects is rejected, with Go's texts. Not guaranteed: Go's long names of Unicode categories
(``\\p{Letter}``), which RE2 does not know.

Compared with Python's ``re``: no expression can block the process, and none has to be translated. Importing takes 5 ms.

Source: regexp/syntax of Go.
"""

import re
from functools import cache
from typing import Any, Protocol

from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.remembered import remembered

_GO_WORDS = {
    "invalid repetition size": "invalid repeat count",
    "missing ]": "missing closing ]",
    "missing )": "missing closing )",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "pattern too large - compile failed": "expression too large",
}
_TOO_LARGE = b"pattern too large"
_LARGE = 1 << 29
_DEPTH_LIMIT = 1000
_SIGNS = re.compile(r"[\\^$.|?*+()\[\]{}]")
_ESCAPES = re.compile(r"\\Q(?:[^\\]|\\(?!E))*(?:\\E)?|\\.|\[\^?\]?|[\]()]", re.DOTALL)


class _Compiled(Protocol):
    """The methods of RE2's compiled expressions that are used."""

    groupindex: dict[str, int]

    def search(self, text: str) -> Any: ...

    def finditer(self, text: bytes) -> Any: ...


class Regexp:
    """A compiled expression."""

    __slots__ = ("_compiled", "_literal")

    def __init__(self, compiled: _Compiled, source: str) -> None:
        self._compiled = compiled
        self._literal = "" if _SIGNS.search(source) else source

    def matches(self, text: str) -> bool:
        """Whether it matches anywhere in the text."""
        return self._compiled.search(text) is not None

    def find(self, text: str) -> str:
        """The first match; empty if there is none."""
        found = self._compiled.search(text)
        return "" if found is None else str(found[0])

    def find_all(self, text: str, limit: int = -1) -> list[str]:
        """All matches, or the first ``limit`` of them, without empty ones right after another."""
        if self._literal:
            count = text.count(self._literal)
            return [self._literal] * (count if limit < 0 else min(count, limit))
        content = text.encode()  # counting characters would take as long again as matching
        found: list[str] = []
        end = -1
        for match in self._compiled.finditer(content):
            if len(found) == limit:
                break
            start, after = match.span()
            if after > end and (start < after or not _within_character(content, start)):
                found.append(content[start:after].decode())
            end = after
        return found


def _within_character(content: bytes, position: int) -> bool:
    return position < len(content) and content[position] & 0xC0 == 0x80


@remembered(1024, longest=16384)
def compile_go(text: str) -> Regexp:
    """Compile an expression. Raises FormatError with Go's texts."""
    import re2  # when an expression is needed: most processes never do

    _check_stricter(text)
    try:
        compiled = re2.compile(text, _options(0))
    except re2.error as error:
        if error.args[0].startswith(_TOO_LARGE):
            return _compile_large(text)
        raise _format_error(error.args[0].decode(errors="replace"), text) from None
    for name in compiled.groupindex:
        if not name.isascii():
            raise _refusal("invalid named capture", f"(?P<{name}>")
    return Regexp(compiled, text)


def _compile_large(text: str) -> Regexp:
    """Compile an expression with a higher memory limit."""
    import re2

    try:
        return Regexp(re2.compile(text, _options(_LARGE)), text)
    except re2.error:
        raise _refusal("expression too large", text) from None


@cache
def _options(memory: int) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    if memory:
        options.max_mem = memory
    return options


def _refusal(why: str, where: str) -> FormatError:
    return FormatError(f"error parsing regexp: {why}: `{where}`")


def _format_error(problem: str, text: str) -> FormatError:
    """RE2's error (``why: where``) in Go's format."""
    why, _, where = problem.partition(": ")
    if why.startswith("trailing"):
        return _refusal("trailing backslash at end of expression", "")
    if where in ("(?<=", "(?<!"):  # Go reads the name of a group there, up to its end
        rest = text[text.find(where) :]
        return _refusal("invalid named capture", rest[: rest.find(">") + 1] or rest)
    return _refusal(_GO_WORDS.get(why, why), where)


def _check_stricter(text: str) -> None:
    """What RE2 takes and Go does not: any byte as ``\\C``, and more than a thousand groups in each other."""
    deep = text.count("(") >= _DEPTH_LIMIT
    if not deep and r"\C" not in text:
        return
    depth, most, in_class = 0, 0, False
    for match in _ESCAPES.finditer(text):
        token = match[0]
        if token == r"\C":
            raise _refusal("invalid escape sequence", token)
        if token[0] == "[":
            in_class = True
        elif token == "]":
            in_class = False
        elif not in_class and token in ("(", ")"):
            depth += 1 if token == "(" else -1
            most = max(most, depth)
    if most >= _DEPTH_LIMIT:
        raise _refusal("expression nests too deeply", text)
