"""Faults to inject, the requests that they select, and records of the requests that were hit."""

from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Literal, cast

import msgspec

from kcm_cli.component.arguments import check_fields
from kcm_cli.sandbox.apiserver.entrance import Asked

Kind = Literal["refuse", "conflict", "throttle", "delay", "lose", "away", "cut", "expire", "stale"]
_WRITES = ("create", "update", "patch", "delete", "deletecollection")
VERBS: Mapping[str, tuple[str, ...]] = {
    "conflict": ("update", "patch"),
    "lose": _WRITES,
    "cut": ("watch",),
    "expire": ("watch", "list"),
    "stale": ("get", "list", "watch"),
}
"""The verbs that a kind of fault can hit; other kinds can hit all."""
_ALL = (*_WRITES, "get", "list", "watch", "post", "put", "head", "options", "connect", "proxy")
"""The verbs of resources and nonResourceURLs."""
_NAMES = {
    "user_agent": "userAgent",
    "start_s": "startSeconds",
    "for_s": "forSeconds",
    "retry_after_s": "retryAfterSeconds",
    "delay_s": "delaySeconds",
    "after_s": "afterSeconds",
    "all_reads": "allReads",
    "kind": "fault",
}


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename=_NAMES, omit_defaults=True):
    """A fault of the API server: its kind, the requests that it hits, and its time.

    kind       refuse: an error, ``status``, without effect. conflict: 409 for updates and patches, without effect.
               throttle: 429 with Retry-After. delay: the request is delayed. lose: a write takes effect, and the
               connection breaks before the response. away: the connection breaks before the request takes effect, as
               do those of open watches. cut: a watch ends ``after_s`` after it begins (an open one after the fault
               begins); with ``broken`` the connection breaks. expire: 410 for a watch from a resourceVersion, or a list
               with a continue token. stale: watches, and reads with resourceVersion=0, show nothing after a revision,
               as from a server with a slow cache; with ``all_reads`` also reads without a resourceVersion.

    user, user_agent   patterns with ``*`` and ``?``; token: a bearer token; empty: all.
    verbs      create, update, patch, delete, deletecollection, get, list, watch; empty: all that the kind can hit.
    resources  patterns: ``pods``, ``pods/status``, ``deployments.apps``; empty: all, and nonResourceURLs.
    namespace, name    patterns, too.

    The first ``skip`` requests that it could hit pass. Then it hits each ``every``-th with the probability ``chance``,
    at most ``times`` (0: any number). The same ``seed`` makes the same choices for the same requests. It begins
    ``start_s`` seconds after it is added, and lasts ``for_s`` seconds (0: until it is removed).

    status     of refuse, with ``message``. retry_after_s: of throttle. delay_s: seconds, or a minimum and a maximum.
    revision   of stale: by default the revision when it begins. Of expire: watches from this or a later revision are
               not hit, as if the server had compacted its history up to there.
    """

    kind: Kind
    user: str = ""
    user_agent: str = ""
    token: str = ""
    verbs: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    namespace: str = ""
    name: str = ""
    skip: int = 0
    every: int = 1
    chance: float = 1.0
    times: int = 0
    seed: int = 0
    start_s: float = 0.0
    for_s: float = 0.0
    status: int = 500
    message: str = ""
    retry_after_s: int = 1
    delay_s: float | tuple[float, float] = 1.0
    after_s: float = 0.0
    broken: bool = False
    revision: int = 0
    all_reads: bool = False

    def __post_init__(self) -> None:
        """Raises TypeError, ValueError."""
        check_fields(self)
        if problem := self._problem():
            raise ValueError(f"{self.kind}: {problem}")

    def _problem(self) -> str:
        possible = VERBS.get(self.kind, _ALL)
        if wrong := [verb for verb in self.verbs if verb not in possible]:
            return f"it can hit {', '.join(possible)}, not {', '.join(wrong)}"
        if self.every < 1 or self.skip < 0 or self.times < 0 or not 0 <= self.chance <= 1:
            return "every is 1 or more, skip and times 0 or more, chance from 0 to 1"
        times = self.start_s, self.for_s, self.after_s, self.retry_after_s, *self.delays
        if not all(0 <= one < float("inf") for one in times) or self.delays[0] > self.delays[1]:
            return "times must be finite and not negative, and delay_s a minimum and a maximum"
        if self.revision < 0:
            return f"{self.revision} is not a revision"
        return "" if 400 <= self.status <= 599 else f"{self.status} is not an error status"

    @property
    def delays(self) -> tuple[float, float]:
        """The minimum and the maximum of the delay."""
        one = self.delay_s
        return one if isinstance(one, tuple) else (one, one)

    def could_hit(self, asked: Asked) -> bool:
        """Whether the fault selects a request."""
        info = asked.info
        verbs = self.verbs or VERBS.get(self.kind)
        return (
            (verbs is None or info.verb in verbs)
            and _fits(self.user, asked.user.name)
            and _fits(self.user_agent, asked.user_agent)
            and (not self.token or self.token == asked.token)
            and (not self.resources or asked.is_of(self.resources))
            and _fits(self.namespace, info.namespace)
            and (not self.name or fnmatchcase(asked.name, self.name))
        )


def faults_of(found: object) -> tuple[Fault, ...]:
    """One fault or a list of them, from decoded JSON or YAML. Raises ValueError."""
    several = found if isinstance(found, list) else [found]
    try:
        return tuple(msgspec.convert(one, Fault) for one in several)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None


def document_of(fault: Fault) -> dict[str, object]:
    """The fault as a document, which ``faults_of`` reads."""
    return cast(dict[str, object], msgspec.to_builtins(fault))


class Happening(msgspec.Struct, frozen=True):
    """A request that a fault has hit. ``resource``: ``pods``, ``pods/status``; ``group``: the API group."""

    time: datetime
    fault: Kind
    user: str
    user_agent: str
    verb: str
    group: str
    resource: str
    namespace: str
    name: str
    path: str

    def __str__(self) -> str:
        what = " ".join(part for part in (self.verb, self.resource or self.path, self._object()) if part)
        return f"{self.fault}: {what} by {self.user}"

    def _object(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace and self.name else self.namespace or self.name


def happening(time: datetime, kind: Kind, asked: Asked) -> Happening:
    """The record of a request that a fault hits."""
    info = asked.info
    who = asked.user.name, asked.user_agent
    return Happening(
        time, kind, *who, info.verb, info.group, asked.resource, info.namespace, asked.name, asked.request.path
    )


def _fits(pattern: str, text: str) -> bool:
    return not pattern or fnmatchcase(text, pattern)
