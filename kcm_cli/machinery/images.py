"""The tag of an image reference, on which the default pull policy depends.

upstream: pkg/util/parsers/parsers.go; distribution/reference normalize.go, regexp.go
"""

import re

from kcm_cli.machinery.remembered import remembered

_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"(?:{_DOMAIN}(?:\.{_DOMAIN})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?"
_PATH = r"[a-z0-9]+(?:(?:[._]|__|[-]+)[a-z0-9]+)*"
_TAG = r"[0-9A-Za-z_][0-9A-Za-z_.-]{0,127}"
_DIGEST = r"[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,}"
_reference = re.compile(rf"(?:{_HOST}/)?({_PATH}(?:/{_PATH})*)(?::({_TAG}))?(?:@({_DIGEST}))?").fullmatch
_identifier = re.compile("[a-f0-9]{64}").fullmatch
_NAME_MAX = 255


@remembered(1024)
def pull_policy(image: str) -> str:
    """``Always`` for the tag ``latest``, explicit or implied; ``IfNotPresent`` for others and for invalid
    references."""
    return "Always" if _tag(image) == "latest" else "IfNotPresent"


def _tag(image: str) -> str:
    domain, rest = _split(image)
    remote = rest.partition(":")[0]
    if _identifier(image) or remote != remote.lower():
        return ""
    found = _reference(f"{domain}/{rest}")
    if not found or len(found[1]) > _NAME_MAX:
        return ""
    if found[2]:
        return str(found[2])
    return "" if found[3] else "latest"


def _split(image: str) -> tuple[str, str]:
    """The registry and the rest, with the defaults of Docker Hub."""
    first, slash, rest = image.partition("/")
    if not slash:
        return "docker.io", f"library/{image}"
    if first == "localhost" or any(char in first for char in ".:") or first != first.lower():
        return first, rest
    return "docker.io", image
