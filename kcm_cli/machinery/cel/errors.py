"""Errors of an expression as clients see them: the message, the line, and the place in it.

CelProblem
├── CelSyntaxError   the text is no expression
└── CelTypeError     an expression that cannot work: an unknown name, operands that do not go together
"""


class CelProblem(Exception):
    """An expression that cannot be run."""


class CelSyntaxError(CelProblem):
    """The text is no expression."""


class CelTypeError(CelProblem):
    """Names or types do not fit."""


_LONGEST_LINE = 16384
"""Bytes of a line that is shown."""


def located(text: str, offset: int, message: str) -> str:
    """``ERROR: <input>:1:5: message``, the line unless it is very long, and a mark below it."""
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
    """The same about the whole text."""
    return f"ERROR: <input>:-1:0: {message}"


def _dot(char: str) -> str:
    return "." if char.isascii() else "\uff0e"
