"""Warnings about files of one volume whose paths overlap.

upstream: pkg/api/pod/warnings.go#warningsForOverlappingVirtualPaths
"""

from collections.abc import Iterable, Iterator
from operator import itemgetter

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree

_MOST = 1000
"""The maximum of overlaps in the warnings: a response has some kilobytes of warnings."""
Place = tuple[str, str]
"""A path, and its source if the volume may have several."""


def overlapping(volumes: list[Tree]) -> list[str]:
    """Warnings about all volumes."""
    found: list[str] = []
    for volume in volumes:
        name = volume.get("name", "")
        for what, items in _whole(volume):
            clashes = _clashes((item.get("path", ""), "") for item in items)
            found += [_text(name, what, clash) for _, clash in clashes]
        projected = volume.get("projected")
        if projected is not None:
            found += _projected(name, projected.get("sources") or ())
    return found


def _text(name: str, what: str, clash: str) -> str:
    return f"volume {quote(name)} ({what}): overlapping paths: {clash}"


def _whole(volume: Tree) -> Iterator[tuple[str, list[Tree]]]:
    for kind, title, field in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        source = volume.get(kind)
        if source and source.get("items"):
            yield f"{title} {quote(source.get(field, ''))}", source["items"]
    downward = volume.get("downwardAPI")
    if downward and downward.get("items"):
        yield "DownwardAPI", downward["items"]


def _projected(name: str, sources: Iterable[Tree]) -> list[str]:
    places: list[Place] = []
    found: list[tuple[float, str]] = []
    for source in sources:
        if not source:
            found.append((len(places) - 0.5, f"volume {quote(name)} (Projected) has no sources provided"))
        places += _places(source)
    found += [(index, _text(name, "Projected", clash)) for index, clash in _clashes(places)]
    return [text for _, text in sorted(found, key=itemgetter(0))]


def _places(source: Tree) -> Iterator[Place]:
    for kind, title in (("configMap", "ConfigMap"), ("secret", "Secret")):
        items = source.get(kind)
        if items is not None and items.get("items"):
            shown = f"{title} {quote(items.get('name', ''))}"
            yield from ((item.get("path", "").rstrip("/"), shown) for item in items["items"])
            return
    downward, token = source.get("downwardAPI"), source.get("serviceAccountToken")
    if downward is not None and downward.get("items"):
        yield from ((item.get("path", "").rstrip("/"), "DownwardAPI") for item in downward["items"])
    elif token is not None:
        yield token.get("path", "").rstrip("/"), "ServiceAccountToken"


def _clashes(places: Iterable[Place]) -> list[tuple[int, str]]:
    """The overlaps of each path with earlier ones, with its index, in this order; of very many only some."""
    known = [(path.rstrip("/"), source) for path, source in places]
    texts = sorted((f"{path}/", index) for index, (path, _) in enumerate(known) if path)
    pairs: list[tuple[int, int]] = []
    for at, (text, index) in enumerate(texts):
        for below in range(at + 1, len(texts)):  # what begins with a text follows it
            other_text, other = texts[below]
            if not other_text.startswith(text) or len(pairs) == _MOST:
                break
            pairs.append((max(index, other), min(index, other)))
    return [(late, f"{_shown(known[late])} with {_shown(known[early])}") for late, early in sorted(pairs)]


def _shown(place: Place) -> str:
    path, source = place
    return f"{quote(path)} ({source})" if source else quote(path)
