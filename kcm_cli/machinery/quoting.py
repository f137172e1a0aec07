"""Text in messages: in double quotes as Go prints it, with escape sequences, shortened."""

from collections.abc import Sequence

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quote(text: str) -> str:
    """The text in the format of Go's ``%q``."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_escape(char) for char in text) + '"'


def escaped(text: str) -> str:
    """The text with all that cannot be printed (line ends, control characters, terminal escapes) as escape sequences;
    quotes and backslashes stay."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escape(char) for char in text)


def json_escaped(text: str) -> str:
    """A JSON text in which all that cannot be printed is escaped, also what turns the direction of text around."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _utf16_escape(char) for char in text)


def _utf16_escape(char: str) -> str:
    units = char.encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def bounded(text: str, limit: int) -> str:
    """The text, cut with an ellipsis where it is longer than ``limit`` characters."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def listed(names: Sequence[str], most: int) -> str:
    """``a, b, c and 2 more``: the first names, and how many there are besides."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


def _escape(char: str) -> str:
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
