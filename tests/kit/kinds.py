"""Tables of a kind's defaults and rules: a field, a value for it, and what the server says to that."""

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from tests.kit.api import Api

Causes = str | list[str]
"""The message of the cause, or of each, behind its field if that is another one; what ends with … goes on."""


def rows(cases: Sequence[tuple[str, Any, Causes]]) -> pytest.MarkDecorator:
    """Run a test for each row: ``field`` as ``spec.ports[0].port``, ``value``, and ``causes``."""
    ids = [f"{field}={value}"[:80] for field, value, _ in cases]
    return pytest.mark.parametrize(("field", "value", "causes"), cases, ids=ids)


@dataclass(frozen=True)
class Kind:
    """Where objects of a kind are created, and one that is valid, without its name."""

    path: str
    valid: dict[str, Any]

    async def created(self, api: Api, *fields: str) -> dict[str, Any]:
        """The fields of a valid object as the server has them."""
        made = await self._make(api)
        return {field: _get(made, field) for field in fields}

    async def refusal(self, api: Api, field: str, value: Any, causes: Causes) -> Causes:
        """What a creation with this value is refused for, as short as ``causes``."""
        doc = _set({"metadata": {"name": "x"}, **self.valid}, field, value)
        return _causes(await api.json("POST", self.path, doc, status=422), field, causes)

    async def refused_change(self, api: Api, field: str, value: Any, causes: Causes) -> Causes:
        """The same of a change of an object that exists."""
        doc = _set(await self._make(api), field, value)
        return _causes(await api.json("PUT", f"{self.path}/x", doc, status=422), field, causes)

    async def _make(self, api: Api) -> Any:
        return await api.json("POST", self.path, {"metadata": {"name": "x"}, **self.valid}, status=201)


def _causes(status: Any, field: str, like: Causes) -> Causes:
    found = [f"{one['field']}: {one['message']}".removeprefix(f"{field}: ") for one in status["details"]["causes"]]
    wanted = [like] if isinstance(like, str) else like
    for number, (text, short) in enumerate(zip(found, wanted, strict=False)):
        if short.endswith("…") and text.startswith(short[:-1]):
            found[number] = short
    return found[0] if isinstance(like, str) and len(found) == 1 else found


def _set(doc: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    doc = copy.deepcopy(doc)
    *way, last = _words(field)
    at: Any = doc
    for word in way:
        at = at[word] if isinstance(word, int) else at.setdefault(word, {})
    at[last] = value
    return doc


def _get(doc: Any, field: str) -> Any:
    for word in _words(field):
        doc = doc[word]
    return doc


def _words(field: str) -> list[str | int]:
    return [int(word) if word.isdigit() else word for word in re.findall(r"[^.[\]]+", field)]
