"""Points: named places at which something goes wrong, which other runs can find again."""

from collections.abc import Collection, Sequence

import msgspec
from msgspec.structs import astuple

KINDS = ("crash", "unsent", "lost", "conflict", "lag", "stale", "older", "terminating", "missed")
VERBS = frozenset({"create", "update", "patch", "delete", "deletecollection"})
"""Those of writes."""
CHANGES = frozenset({"ADDED", "MODIFIED", "DELETED"})
ALL_KINDS = (*KINDS, "refused")
"""With those that have to be asked for: many small operators leave to the next change what was refused."""
_DESCRIPTIONS = {
    "crash": "crashed after {}",
    "unsent": "crashed before {}",
    "lost": "lost the answer to {}",
    "refused": "was refused {} with an error of the server",
    "conflict": "was overtaken at {} by another client",
    "lag": "saw nothing from {} on for a second",
    "stale": "saw nothing from {} on for a while",
    "older": "crashed after {}, and was restarted on a server that had seen nothing since the step before",
    "terminating": "crashed after {}, and was restarted on a server that still showed as terminating what was gone",
    "missed": "missed {} and all that followed, then had to list anew",
}
_OLD = "crashed after {}, and was restarted on a server that had not seen that yet"


_ADVICE = {
    "crash": "after a restart it has to find out, by what is in the cluster, which of its writes are missing",
    "unsent": "after a restart it has to find what it has done, also outside of the cluster: derive names from uids",
    "lost": "a write may have passed though no answer came: look first, or create under a name that stays the same",
    "refused": "a write that is refused has to be tried again, and what comes after it must wait",
    "conflict": "after a 409 read the object again, and apply the change to what is there now",
    "stale": "a cache may be behind: ask the server before what cannot be undone, or name the uid and resourceVersion",
    "lag": "its cache may not show yet what it wrote: remember that, or wait for it, before the next decision",
    "terminating": "another object may have the name now: compare uids, and ask the server before it deletes anything",
    "missed": "events may be missed: after 410 list anew, and compare what there is with what there should be",
}


class Spot(msgspec.Struct, frozen=True):
    """The n-th operation on an object. ``verb``: that of a write, or ADDED, MODIFIED, DELETED.

    client: which of the operator's clients writes, if it has several.
    """

    verb: str
    resource: str
    name: str
    nth: int
    client: str = ""

    def __str__(self) -> str:
        client = f"{self.client}:" if self.client else ""
        return f"{client}{self.verb}:{self.resource}:{self.name}#{self.nth}"

    def describe(self, *, counted: bool = True) -> str:
        """The spot as text: ``update 2 of widgets/status web``. counted: with its number."""
        count = f" {self.nth}" if counted and self.nth > 1 else ""
        client = f" by {self.client}" if self.client else ""
        return f"{self.verb}{count} of {self.resource} {self.name}{client}"


class Point(msgspec.Struct, frozen=True):
    """A perturbation at a spot. ``--kcm-replay`` takes its text."""

    kind: str
    spot: Spot

    def __str__(self) -> str:
        return f"{self.kind}@{self.spot}"

    def describe(self) -> str:
        """The point as text: ``crashed after update of widgets/status web``."""
        text = _OLD if self.kind == "stale" and self.spot.verb.islower() else _DESCRIPTIONS[self.kind]
        return text.format(self.spot.describe())

    def advice(self) -> str:
        """How an operator can handle this."""
        return _ADVICE["stale" if self.kind == "older" else self.kind]


def point_of(text: str) -> Point:
    """Parse a point's text. Raises ValueError."""
    kind, at, spot = text.partition("@")
    parts, hashed, nth = spot.rpartition("#")
    first, _, rest = parts.partition(":")
    client, rest = ("", parts) if first in VERBS | CHANGES else (first, rest)
    words = rest.split(":", 2)  # a name may have colons, as those of RBAC have
    known = kind in ALL_KINDS and len(words) == 3 and words[0] in VERBS | CHANGES
    if not known or not at or not hashed or not (nth.isascii() and nth.isdigit()):
        raise ValueError(f"{text!r} is no point: write it as a report has it, like crash@update:widgets:web#1")
    return Point(kind, Spot(words[0], words[1], words[2], int(nth), client))


def kinds_of(text: str) -> tuple[str, ...]:
    """Parse a list of kinds. Raises ValueError."""
    chosen = tuple(word for word in text.split(",") if word)
    if wrong := [word for word in chosen if word not in ALL_KINDS]:
        raise ValueError(f"{', '.join(wrong)}: choose from {', '.join(ALL_KINDS)}")
    return chosen or KINDS


class Spots(msgspec.Struct):
    """The spots of a run.

    writes: the operator's successful writes, without those in the quiet time at the end. conflicting: those that
    another client may overtake: with a resourceVersion, or replacing an object of another client. afterwards: those
    after an object that it reads was terminating and then deleted. seen: the changes that its watches show.
    """

    writes: list[Spot] = msgspec.field(default_factory=list)
    conflicting: list[Spot] = msgspec.field(default_factory=list)
    afterwards: list[Spot] = msgspec.field(default_factory=list)
    seen: list[Spot] = msgspec.field(default_factory=list)

    def shared(self, other: "Spots") -> "Spots":
        """Those that another run has, too, in the order of this one."""
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Spots(*(_common(mine, theirs) for mine, theirs in pairs))

    def points(self, kinds: Sequence[str], most: int) -> list[Point]:
        """All points of these kinds, at most ``most``; first occurrences take precedence."""
        sources = dict.fromkeys(("crash", "unsent", "lost", "lag", "refused", "older"), self.writes)
        sources |= {"conflict": self.conflicting, "terminating": self.afterwards}
        sources |= {"stale": [*self.seen, *self.writes], "missed": self.seen}
        found = [Point(kind, spot) for kind in kinds for spot in sources[kind]]
        return found if most <= 0 or len(found) <= most else _chosen(found, most)


def _common(first: Sequence[Spot], second: Collection[Spot]) -> list[Spot]:
    known = set(second)
    return [spot for spot in first if spot in known]


def _chosen(points: Sequence[Point], most: int) -> list[Point]:
    """A selection of this size: first occurrences before second ones, and an even selection of the last."""
    last = sorted(point.spot.nth for point in points)[most]
    sure = [point for point in points if point.spot.nth < last]
    others, room = [point for point in points if point.spot.nth == last], most - len(sure)
    chosen = {*sure, *(others[index * len(others) // room] for index in range(room))}
    return [point for point in points if point in chosen]
