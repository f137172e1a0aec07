"""Leaves secrets out of what a bug report has: JSON, lines of flags, errors and texts of any form.

It is pure, and its patterns are linear. A value is left out if its name may be that of a secret, and stays if the name
says that it is a number, a duration or a path about one.
"""

import re

from kcm_cli.trace.text import plain

_DEEP = 100
_REDACTED = "(redacted)"
_SECRET = re.compile(
    r"token|passw|passphrase|pwd|secret|credential|(?:api|access|private|signing|encryption|ssh).?key|key.?data|bearer"
    r"|cookie|auth(?:orization)?\Z",
    re.IGNORECASE,
)
_MEASURES = ("file", "dir", "path", "ttl", "period", "timeout", "interval", "duration", "deadline", "seconds")
_COUNTS = ("syncs", "count", "total", "limit", "name", "names", "namespace")
_MEASURED = re.compile(rf"(?:{'|'.join((*_MEASURES, *_COUNTS))})\Z", re.IGNORECASE)
"""Names of numbers, durations and paths, and of objects, that are about a secret."""
_NAME = re.compile(r"(?:name|namespace)s?\Z", re.IGNORECASE)
_MEASURE = re.compile(r"-?[0-9.]{1,20}|-?(?:[0-9.]{1,20}(?:h|ms|m|s|us|µs|ns)){1,6}|/\S*")
_SWITCHES = frozenset({"", "true", "false", "<nil>", "[]", "map[]"})
"""Values that are no secret whatever the field is called."""
_USER = re.compile(r"://\S+")
_PARAMETER = re.compile(r"([?&#][^=&?#\s]{1,128}=)([^&\s]+)")
_SECRET_PARAMETER = re.compile(r"token|passw|secret|key|sig", re.IGNORECASE)
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z0-9 ]{0,30}PRIVATE KEY")
_END_OF_KEY = re.compile(r"-----END [A-Z0-9 ]{0,40}-----")
_NO_MEASURE = "".join(f"(?<!{end})" for end in (*_MEASURES, *_COUNTS))
_IN_TEXT = re.compile(
    rf"""(
      (?:passw(?:or)?d|passphrase|pwd|authorization)s?[ \t]?:
    | (?:token|secret|credential|cookie|(?:api|access|private)[-_ ]?key)s?[ \t]?:(?![ ]?[a-z]{{1,20}}[ ]\S)
    | (?:authorization
      | (?:token|secret|credential|cookie|passw|passphrase|pwd|(?:api|access|private)[-_ ]?key)[\w.-]{{0,24}}
      ){_NO_MEASURE}(?:[ \t]?=|\\?["'][ \t]?(?:=|:(?=[ \t]?\\?["'0-9])))
    )
    ([=>]?[ \t]{{0,3}})
    (?!["']?(?:true|false|<nil>|\[\]|map\[\])(?![^\s"',;)}}\]]))
    (?:(?:Basic|Bearer|Digest|Negotiate)[ \t])?
    (?:\\"(?:[^"\\\n]|\\[^"\n])*(?:\\")?|"(?:[^"\\\n]|\\.)*"?|'(?:[^'\\\n]|\\.)*'?|[^\s"']\S*)""",
    re.IGNORECASE | re.VERBOSE,
)
"""A name and its value within a text: to the end of the quotation, or of the word. A name with a colon may also be the
start of an error, as in "secret: not found"."""
_BEARER = re.compile(r"\b(Bearer )(?!tokens?\b|authentication\b)\S+", re.IGNORECASE)
_WEB_TOKEN = re.compile(r"(?<![\w-])eyJ\S{8,}")
"""JSON in Base64, as all JSON web tokens begin."""
_LINE = re.compile(r"(-{0,2}[A-Za-z0-9][\w.-]{0,127})(: |:|=| )(.*)")


def redacted(value: object, name: str = "", *, is_secret: bool = False, depth: int = 0) -> object:
    """Without the values of fields that may be secrets, also within such fields, and without the secrets in texts.

    name: of the field. is_secret: whether it is within a field that may be secret. depth: of the value; what is very
    deep is left out.
    """
    if depth > _DEEP:
        return _REDACTED
    is_secret = is_secret or _SECRET.search(name) is not None
    if isinstance(value, dict):
        if is_secret and name.lower().endswith("s") and not _MEASURED.search(name):
            return _REDACTED  # its keys may be the secrets
        return {
            _text(str(key)): redacted(inner, str(key), is_secret=is_secret, depth=depth + 1)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        lines = [one for one in value if isinstance(one, str) and "\n" not in one]
        if lines and len(lines) == len(value) and not is_secret:
            return _text("\n".join(lines)).split("\n")  # a private key has many lines
        return [redacted(inner, name, is_secret=is_secret, depth=depth + 1) for inner in value]
    if is_secret and isinstance(value, str | int) and not isinstance(value, bool) and not _harmless(name, str(value)):
        return _REDACTED
    return _text(value) if isinstance(value, str) else value


def _harmless(name: str, value: str) -> bool:
    if value in _SWITCHES or _NAME.search(name):
        return True
    return _MEASURED.search(name) is not None and _MEASURE.fullmatch(value) is not None


def _text(text: str) -> str:
    """A text without private keys, users in URLs, credentials of HTTP, and values that are called secrets."""
    text = _USER.sub(_without_user, _without_private_keys(text))
    text = _PARAMETER.sub(_without_secret, text)
    text = _IN_TEXT.sub(rf"\g<1>\g<2>{_REDACTED}", text)
    return _WEB_TOKEN.sub(_REDACTED, _BEARER.sub(rf"\g<1>{_REDACTED}", text))


def _without_private_keys(text: str) -> str:
    found, at = list[str](), 0
    while begin := _PRIVATE_KEY.search(text, at):
        end = _END_OF_KEY.search(text, begin.end())
        found += (text[at : begin.start()], _REDACTED)
        at = end.end() if end else len(text)
    return "".join((*found, text[at:]))


def _without_user(rest: re.Match[str]) -> str:
    """What comes after the scheme. A password may have any sign, so that it ends at the last @ of the word."""
    at = rest[0].rfind("@")
    return f"://{_REDACTED}{rest[0][at:]}" if at > 0 else rest[0]


def _without_secret(parameter: re.Match[str]) -> str:
    return parameter[1] + _REDACTED if _SECRET_PARAMETER.search(parameter[1]) else parameter[0]


def redacted_lines(text: str) -> list[str]:
    """The lines of /flagz, without the values of flags that may be secrets."""
    found = []
    for line in _without_private_keys(text).splitlines():
        match = _LINE.fullmatch(line)
        found.append(f"{match[1]}{match[2]}{redacted(match[3], match[1])}" if match else line)
    return [plain(line) for line in found]
