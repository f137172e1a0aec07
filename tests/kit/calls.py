"""Which files a value passes on its way through a real run: the stacks at some moments, one after the other.

A *moment* is a call or a return at which the value has a new form: an event, a key, an action, a request. The stack
at a moment says how the value came there. What was on the stack before is not counted again, and functions that
returned before the moment are not on it. A *visit* is a call into another file than the caller's.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from types import FrameType

import msgspec

from tests.kit.places import ROOT

_PACKAGE = str(ROOT / "kcm_cli") + "/"
_LOOP = "component/virtual.py"
"""It calls everything."""


class Moment(msgspec.Struct, frozen=True):
    """``at``: the name of the function whose call is the moment, or "" for a return. ``when``: whether this is it, by
    the file, the arguments by name, and the result (of a return)."""

    name: str
    at: str
    when: Callable[[str, dict[str, object], object], object]


class Stop(msgspec.Struct, frozen=True):
    """A visit: the file in kcm_cli, the function that was called first, and the moment towards which it is."""

    file: str
    function: str
    moment: str

    @property
    def folder(self) -> str:
        return str(PurePath(self.file).parent)


class Recorder:
    """Waits for moments, one after the other."""

    def __init__(self, moments: Sequence[Moment], *, inside: str = "") -> None:
        """inside: callers outside of this folder of kcm_cli do not count."""
        self._moments = tuple(moments)
        self._inside = inside
        self._stacks: list[tuple[FrameType, ...]] = []

    @contextmanager
    def recording(self) -> Iterator[None]:
        """While inside, calls of this thread are watched."""
        sys.setprofile(self._seen)
        try:
            yield
        finally:
            sys.setprofile(None)

    def _seen(self, frame: FrameType, event: str, result: object) -> None:
        path = frame.f_code.co_filename
        if len(self._stacks) == len(self._moments) or not path.startswith(_PACKAGE) or event not in ("call", "return"):
            return
        moment = self._moments[len(self._stacks)]
        if event != ("call" if moment.at else "return") or (moment.at and moment.at != frame.f_code.co_name):
            return
        if moment.when(_file(frame), frame.f_locals if moment.at else {}, result):
            self._stacks.append(tuple(self._stack(frame)))

    def _stack(self, frame: FrameType) -> list[FrameType]:
        found: list[FrameType] = []
        above: FrameType | None = frame
        while above is not None:
            name = above.f_code.co_filename
            if name.startswith(_PACKAGE + self._inside) and _file(above) != _LOOP:
                found.append(above)
            above = above.f_back
        return found[::-1]

    def stops(self) -> list[Stop]:
        """The visits in order. Raises AssertionError if a moment did not come."""
        assert len(self._stacks) == len(self._moments), f"never: {self._moments[len(self._stacks)].name}"
        stops: list[Stop] = []
        before: tuple[FrameType, ...] = ()
        for moment, stack in zip(self._moments, self._stacks, strict=True):
            for depth, frame in enumerate(stack):
                known = depth < len(before) and all(a is b for a, b in zip(stack[: depth + 1], before, strict=False))
                called_from = _file(stack[depth - 1]) if depth else ""
                if not known and _file(frame) != called_from:
                    stops.append(Stop(_file(frame), frame.f_code.co_name, moment.name))
            before = stack
        return stops


def _file(frame: FrameType) -> str:
    return frame.f_code.co_filename.removeprefix(_PACKAGE)
