"""Errors of an expression as clients see them: the message, the line, and the position in it.

CelProblem
├── CelSyntaxError   the text cannot be parsed
└── CelTypeError     unknown names, or no matching overload
"""


class CelProblem(Exception):
    """An invalid expression."""


class CelSyntaxError(CelProblem):
    """The text cannot be parsed."""


class CelTypeError(CelProblem):
    """A name or type does not match."""


_LONGEST_LINE = 16384
"""Bytes of a line that is shown."""


def located(text: str, offset: int, message: str) -> str:
    """``ERROR: <input>:1:5: message``, the line (unless it is very long), and a mark below the position."""
    if not text:
        return f"ERROR: <input>:1:0: {message}"
    line_start = text.rfind("\n", 0, offset) + 1
    line_end = text.find("\n", offset)
    line = text[line_start : line_end if line_end >= 0 else len(text)]
    number, column = text.count("\n", 0, offset) + 1, offset - line_start
    head = f"ERROR: <input>:{number}:{column + 1}: {message}"
    if len(line.encode("utf-8", "surrogatepass")) > _LONGEST_LINE:
        return head
    marks = "".join(map(_dot, line[:column])) + ("^" if line[column : column + 1].isascii() else "\uff3e")
    shown = line.replace("\t", " ")
    return f"{head}\n | {shown}\n | {marks}"


def unlocated(message: str) -> str:
    """An error without a position."""
    return f"ERROR: <input>:-1:0: {message}"


def _dot(char: str) -> str:
    return "." if char.isascii() else "\uff0e"
