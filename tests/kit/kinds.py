"""Tables of a kind's defaults, and of values that the server refuses, with what it says to them."""

import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tests.kit.api import Api

Causes = str | list[str]
"""The message of the cause, or of each. If the cause names another field than the row, it is in front: the rest of it
(``[0].name``) where it is below the row's field, else all of it. What ends with … goes on."""
Row = tuple[str, Any, Causes]
"""A field (``spec.ports[0].port``), a value, and its causes. ``spec+``: the value has more fields of ``spec``."""


@dataclass(frozen=True)
class Kind:
    """Where objects of a kind are created, and one that is valid, without its name."""

    path: str
    valid: dict[str, Any]

    async def check(self, api: Api, defaults: Mapping[str, Any], refused: Sequence[Row], kept: Sequence[Row]) -> None:
        """Assert that the server refuses to create the valid object with each value, gives it these defaults, and
        refuses to change it to each value of the last table."""
        new = {"metadata": {"name": "x"}, **self.valid}
        said = [await self._said(api, "POST", self.path, new, row) for row in refused]
        assert said == refused
        made = await api.json("POST", self.path, new, status=201)
        assert {place: _get(made, place) for place in defaults} == defaults
        said = [await self._said(api, "PUT", f"{self.path}/x", made, row) for row in kept]
        assert said == kept

    async def _said(self, api: Api, method: str, path: str, doc: Any, row: Row) -> Row:
        """The row with what the server says, as short as the row says it."""
        place, value, like = row
        status = await api.json(method, path, _set(doc, place, value), status=422)
        found = [_short(cause, place.removesuffix("+")) for cause in status["details"]["causes"]]
        wanted = [like] if isinstance(like, str) else like
        for number, (text, short) in enumerate(zip(found, wanted, strict=False)):
            if short.endswith("…") and text.startswith(short[:-1]):
                found[number] = short
        return place, value, found[0] if isinstance(like, str) and len(found) == 1 else found


def _short(cause: Any, place: str) -> str:
    rest = cause["field"].removeprefix(place)
    where = rest if cause["field"].startswith(place) and (not rest or rest[0] in ".[") else cause["field"]
    return f"{where}: {cause['message']}" if where else cause["message"]


def _set(doc: dict[str, Any], place: str, value: Any) -> dict[str, Any]:
    doc = copy.deepcopy(doc)
    *way, last = _words(place.removesuffix("+"))
    at: Any = doc
    for word in way:
        at = at[word] if isinstance(word, int) else at.setdefault(word, {})
    at[last] = {**at[last], **value} if place.endswith("+") else value
    return doc


def _get(doc: Any, place: str) -> Any:
    for word in _words(place):
        doc = doc[word]
    return doc


def _words(place: str) -> list[str | int]:
    return [int(word) if word.isdigit() else word for word in re.findall(r"[^.[\]]+", place)]
