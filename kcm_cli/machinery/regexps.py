"""Regular expressions in the syntax of Go (RE2), run by Python's ``re``.

Guaranteed: what Go refuses is refused with its words; ``$`` is the end of the text, classes are ASCII. Not
guaranteed: linear time; Unicode classes other than letters and numbers; the ungreedy flag.

Source: regexp/syntax of Go.
"""

import re
from functools import lru_cache

from kcm_cli.machinery.errors import FormatError

_NAMED_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_UNICODE_CLASSES = {"L": r"[^\W\d_]", "N": r"\d", "Nd": r"\d"}
_REPEAT_MOST = 1000
_REPEAT = re.compile(r"\{(\d+)(?:(,)(\d*))?\}")
_FLAGS = re.compile(r"\(\?([imsU]*(?:-[imsU]+)?)([:)])")
_NAMED_GROUP = re.compile(r"\(\?P?<(\w+)>")


@lru_cache(maxsize=1024)
def compile_go(text: str) -> re.Pattern[str]:
    """The expression. Raises FormatError with Go's words."""
    translated = _Translation(text).run()
    try:
        return re.compile(translated)
    except (re.error, OverflowError, RecursionError) as error:
        raise _refusal(str(error), text) from None


def _refusal(why: str, where: str) -> FormatError:
    return FormatError(f"error parsing regexp: {why}: `{where}`")


class _Translation:
    """One pass over an expression.

    ``groups``: per open group, how many flag groups were opened inside of it, to be closed with it.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.out: list[str] = []
        self.groups: list[list[str]] = [[]]
        self.multiline: list[bool] = [False]
        self.repeatable = False
        self.repeated_from = -1

    def run(self) -> str:
        text = self.text
        while self.at < len(text):
            self._step(text[self.at])
        if len(self.groups) > 1:
            raise _refusal("missing closing )", text)
        self.out.append(")" * len(self.groups[0]))
        return "".join(self.out)

    def _step(self, char: str) -> None:
        match char:
            case "\\":
                self._atom(self._escape())
            case "[":
                self._atom(self._class())
            case "(":
                self._open()
            case ")":
                self._close()
            case "|":
                flags = self.groups[-1]
                self._put(")" * len(flags) + "|" + "".join(f"(?{one}:" for one in flags))
            case "^" | "$":
                self._put((r"\Z" if char == "$" else char) if not self.multiline[-1] else char, repeatable=True)
            case "*" | "+" | "?":
                self._repeat(char)
            case "{" if found := _REPEAT.match(self.text, self.at):
                self._repeat(found[0])
            case _:
                self._atom(char if char != "{" else r"\{", consumed=1)

    def _put(self, text: str, *, repeatable: bool = False, consumed: int = 1) -> None:
        self.out.append(text)
        self.at += consumed
        self.repeatable = repeatable
        self.repeated_from = -1

    def _atom(self, text: str, consumed: int = 0) -> None:
        self._put(text, repeatable=True, consumed=consumed)

    def _repeat(self, operator: str) -> None:
        if self.repeated_from >= 0:
            said = self.text[self.repeated_from : self.at + len(operator)]
            raise _refusal("invalid nested repetition operator", said)
        if not self.repeatable:
            raise _refusal("missing argument to repetition operator", operator)
        if found := _REPEAT.fullmatch(operator):
            least, most = int(found[1]), int(found[3] or found[1])
            if least > _REPEAT_MOST or most > _REPEAT_MOST or most < least:
                raise _refusal("invalid repeat count", operator)
        start = self.at
        self.at += len(operator)
        if self.text.startswith("?", self.at):
            operator += "?"
            self.at += 1
        self.out.append(operator)
        self.repeated_from = start

    def _open(self) -> None:
        text, at = self.text, self.at
        if not text.startswith("(?", at):
            self._enter("(", 1)
        elif found := _NAMED_GROUP.match(text, at):
            self._enter(f"(?P<{found[1]}>", len(found[0]))
        elif found := _FLAGS.match(text, at):
            flags = found[1].replace("U", "").rstrip("-")
            if "m" in found[1].partition("-")[0]:
                self.multiline[-1] = True
            if found[2] == ":":
                self._enter(f"(?{flags}:", len(found[0]))
            else:
                self.groups[-1].append(flags)
                self._put(f"(?{flags}:", consumed=len(found[0]))
        else:
            raise _refusal("invalid or unsupported Perl syntax", text[at : at + 3])

    def _enter(self, written: str, consumed: int) -> None:
        self.groups.append([])
        self.multiline.append(self.multiline[-1])
        self._put(written, consumed=consumed)

    def _close(self) -> None:
        if len(self.groups) == 1:
            raise _refusal("unexpected )", self.text)
        flags = self.groups.pop()
        self.multiline.pop()
        self._atom(")" * len(flags) + ")", consumed=1)

    def _escape(self) -> str:
        """An escape outside of a class; moves on."""
        text, at = self.text, self.at
        if at + 1 == len(text):
            raise FormatError("error parsing regexp: trailing backslash at end of expression: ``")
        following = text[at + 1]
        self.at += 2
        match following:
            case "z":
                return r"\Z"
            case "Q":
                end = text.find(r"\E", self.at)
                literal = text[self.at :] if end < 0 else text[self.at : end]
                self.at = len(text) if end < 0 else end + 2
                return f"(?:{re.escape(literal)})"
            case "b" | "B" | "A" | "d" | "D" | "w" | "W" | "s" | "S":
                return _ascii(following)
            case "p" | "P":
                return self._unicode(following == "P")
        self.at -= 2
        return self._char()

    def _unicode(self, negated: bool) -> str:
        text, at = self.text, self.at
        if text.startswith("{", at):
            end = text.find("}", at)
            name, self.at = text[at + 1 : end], end + 1
        else:
            name, self.at = text[at : at + 1], at + 1
        known = _UNICODE_CLASSES.get(name)
        if known is None:
            raise _refusal("invalid character class range", text[at - 2 : self.at])
        return f"(?!{known})." if negated else known

    def _char(self) -> str:
        """An escape of one character; moves on."""
        text, at = self.text, self.at
        following = text[at + 1] if at + 1 < len(text) else ""
        if following and not following.isalnum() and following.isascii():
            self.at += 2
            return re.escape(following)
        if following in ("a", "f", "t", "n", "r", "v"):
            self.at += 2
            return f"\\{following}"
        if found := re.compile(r"\\x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]+)\})").match(text, at):
            self.at += len(found[0])
            return re.escape(chr(int(found[1] or found[2], 16)))
        if found := re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})").match(text, at):
            self.at += len(found[0])
            return re.escape(chr(int(found[1], 8)))
        raise _refusal("invalid escape sequence", text[at : at + 2])

    def _class(self) -> str:
        """A bracketed class; moves on."""
        text, start = self.text, self.at
        self.at += 1
        parts = ["["]
        if text.startswith("^", self.at):
            parts.append("^")
            self.at += 1
        first = True
        while True:
            if self.at >= len(text):
                raise _refusal("missing closing ]", text[start:])
            char = text[self.at]
            if char == "]" and not first:
                self.at += 1
                return "".join(parts) + "]"
            first = False
            parts.append(self._member(char))

    def _member(self, char: str) -> str:
        text = self.text
        if text.startswith("[:", self.at) and (end := text.find(":]", self.at)) > 0:
            said = text[self.at : end + 2]
            name = said[2:-2]
            letters = _NAMED_CLASSES.get(name.lstrip("^"))
            if letters is None:
                raise _refusal("invalid character class range", said)
            self.at = end + 2
            return letters
        if char == "\\":
            following = text[self.at + 1 : self.at + 2]
            if following in ("d", "D", "w", "W", "s", "S"):
                self.at += 2
                return _ascii(following, inside=True)
            if following in ("p", "P"):
                self.at += 2
                known = self._unicode(False)
                return r"\w" if known.startswith("[") else known
            return self._char()
        found = re.compile(r"([^\\\]])-([^\\\]])").match(text, self.at)
        if found is not None and found[1] > found[2]:
            raise _refusal("invalid character class range", found[0])
        self.at += 1
        return "\\" + char if char in "[&~|" else char


_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}


def _ascii(letter: str, *, inside: bool = False) -> str:
    """A class of Perl in its ASCII meaning."""
    if letter in "bB":
        return rf"(?a:\{letter})"
    if letter == "A":
        return r"\A"
    if inside:
        return {"D": r"\D", "W": r"\W", "S": r"\S"}.get(letter, _ASCII.get(letter.lower(), ""))
    return f"[{'^' if letter.isupper() else ''}{_ASCII[letter.lower()]}]"
