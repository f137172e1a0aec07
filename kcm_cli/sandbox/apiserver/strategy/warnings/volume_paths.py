"""Warnings about files of one volume whose paths overlap.

upstream: pkg/api/pod/warnings.go#warningsForOverlappingVirtualPaths
"""

from collections.abc import Iterable, Iterator

from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.types import Tree

Place = tuple[str, str]
"""A path, and its source if the volume may have several."""


def overlapping(volumes: list[Tree]) -> list[str]:
    """Warnings about all volumes."""
    found: list[str] = []
    for volume in volumes:
        name = volume.get("name", "")
        for what, items in _whole(volume):
            found += [_text(name, what, clash) for clash in _clashes((item.get("path", ""), "") for item in items)]
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
    found: list[str] = []
    places: list[Place] = []
    for source in sources:
        if not source:
            found.append(f"volume {quote(name)} (Projected) has no sources provided")
            continue
        for place in _places(source):
            known = [place if one == place else one for one in places]
            found += [_text(name, "Projected", clash) for clash in _with(known, place)]
            places.append(place)
    return found


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


def _clashes(places: Iterable[Place]) -> list[str]:
    found: list[str] = []
    known: list[Place] = []
    for path, source in places:
        place = (path.rstrip("/"), source)
        found += _with(known, place)
        known.append(place)
    return found


def _with(known: list[Place], place: Place) -> list[str]:
    """The overlaps of a path with known ones."""
    path = place[0]
    if not path:
        return []
    below = f"{path}/"
    return [
        f"{_shown(place)} with {_shown(other)}"
        for other in known
        if other[0] and (f"{other[0]}/".startswith(below) or below.startswith(f"{other[0]}/"))
    ]


def _shown(place: Place) -> str:
    path, source = place
    return f"{quote(path)} ({source})" if source else quote(path)
