"""``$(NAME)`` in a container's command, args, variables and subPathExpr.

upstream: third_party/forked/golang/expansion/expand.go, pkg/kubelet/container/helpers.go#ExpandContainerCommandAndArgs
"""

import re
from collections.abc import Mapping

MOST_EXPANDED = 1 << 17
"""The limit for a word or variable in characters. Linux starts no program with a longer one."""
_REFERENCE = re.compile(r"\$\$|\$\(([^)]*)\)")


def expand(text: str, env: Mapping[str, str | None]) -> str | None:
    """Expand ``$(NAME)`` as in a container's command and args. Unknown names stay, and ``$$`` is a dollar sign.

    Returns None if the values make the text longer than MOST_EXPANDED.
    """

    def value(match: re.Match[str]) -> str:
        known = "$" if match[0] == "$$" else env.get(match[1])
        return match[0] if known is None else known

    end = _last_reference(text)
    values = (env.get(match[1]) or "" for match in _REFERENCE.finditer(text, 0, end) if match[0] != "$$")
    added = sum(map(len, values))
    if added and added + len(text) > MOST_EXPANDED:
        return None
    return _REFERENCE.sub(value, text[:end]) + text[end:].replace("$$", "$")


def references(text: str) -> list[str]:
    """Return the names that ``expand`` looks up in this text."""
    return [match[1] for match in _REFERENCE.finditer(text, 0, _last_reference(text)) if match[0] != "$$"]


def _last_reference(text: str) -> int:
    """The end of the last possible reference. It bounds the search for closing parentheses."""
    return text.rfind(")") + 1
