"""What other clients do to the slices of a Service ``web``: steps of tests with any history."""

import random
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any

from kcm_cli.api.discovery import ENDPOINT_SLICES, MANAGED_BY, SERVICE_NAME
from kcm_cli.api.resource import Resource
from tests.kit.world import World

Doc = dict[str, Any]
Steps = Iterable[tuple[str, int]]
NUMBERS = 7
"""Of pods, for example: each step has a number below it."""
OTHERS = ("empty", "confuse", "note", "unlabel", "take", "hold", "drop", "copy", "forge")


class Meddling(ABC):
    """Each step has a number: which slice. ``manager``: the one whose slices they are."""

    def __init__(self, world: World, manager: str) -> None:
        self.world = world
        self.manager = manager

    @abstractmethod
    async def check(self) -> None:
        """At rest: everything is in its place."""

    async def tour(self, names: Iterable[str], usual: Steps, rng: random.Random) -> None:
        """Each step alone, after the usual ones, and a look at what comes of it."""
        for name in names:
            for before, number in usual:
                await self.step(before, number)
            await self.world.wait(30)
            await self.step(name, rng.randrange(NUMBERS))
            await self.world.wait(30)
            await self.check()

    async def step(self, name: str, number: int) -> None:
        """Raises AttributeError for a name that is no step."""
        await getattr(self, f"step_{name}")(number)

    async def step_wait(self, number: int) -> None:
        await self.world.wait((0.01, 0.2, 1, 1.5, 3, 5, 30)[number])

    async def step_empty(self, number: int) -> None:
        await self._patch_slice(number, {"endpoints": []})

    async def step_confuse(self, number: int) -> None:
        """A slice gets the endpoints of another one."""
        slice_ = await self._slice(number)
        if slice_ is not None:
            alike = [one for one in await self.slices() if one["addressType"] == slice_["addressType"]]
            await self._patch_slice(number, {"endpoints": alike[0].get("endpoints") or []})

    async def step_note(self, number: int) -> None:
        await self._patch_slice(number, {"metadata": {"annotations": {"own": f"{number}"}, "labels": {"own": "x"}}})

    async def step_unlabel(self, number: int) -> None:
        await self._patch_slice(number, {"metadata": {"labels": {SERVICE_NAME: None}}})

    async def step_take(self, number: int) -> None:
        """Another manager has the slice from now on."""
        await self._patch_slice(number, {"metadata": {"labels": {MANAGED_BY: "me"}}})

    async def step_hold(self, number: int) -> None:
        """A slice that is deleted stays as long as it has the finalizer."""
        await self._patch_slice(number, {"metadata": {"finalizers": ["example.com/wait"]}})

    async def step_drop(self, number: int) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            await self.world.delete(ENDPOINT_SLICES, slice_["metadata"]["name"])

    async def step_copy(self, number: int) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            meta = {key: slice_["metadata"][key] for key in ("labels", "ownerReferences") if key in slice_["metadata"]}
            copy = {key: value for key, value in slice_.items() if key in ("addressType", "endpoints", "ports")}
            await self.world.create(ENDPOINT_SLICES, {"metadata": {"generateName": "copy-", **meta}, **copy})

    async def step_forge(self, number: int) -> None:
        """A slice that nobody owns, with an address that no pod has."""
        meta = {"generateName": "forged-", "labels": {SERVICE_NAME: "web", MANAGED_BY: self.manager}}
        endpoints = [{"addresses": [f"10.2.0.{number + 1}"], "conditions": {"ready": True}}]
        await self.world.create(
            ENDPOINT_SLICES, {"metadata": meta, "addressType": "IPv4", "endpoints": endpoints, "ports": [{"port": 80}]}
        )

    async def slices(self) -> list[Doc]:
        """The slices of the Service, but those that are being deleted."""
        found = await self.world.items(ENDPOINT_SLICES)
        own = {SERVICE_NAME: "web", MANAGED_BY: self.manager}.items()
        return [
            one
            for one in found
            if own <= one["metadata"].get("labels", {}).items() and "deletionTimestamp" not in one["metadata"]
        ]

    async def versions(self, *kinds: Resource[Any]) -> dict[str, str]:
        found = [one["metadata"] for kind in kinds for one in await self.world.items(kind)]
        return {meta["uid"]: meta["resourceVersion"] for meta in found}

    async def _slice(self, number: int) -> Doc | None:
        found = await self.slices()
        return found[number % len(found)] if found else None

    async def _patch_slice(self, number: int, body: Doc) -> None:
        slice_ = await self._slice(number)
        if slice_ is not None:
            await self.world.patch(ENDPOINT_SLICES, slice_["metadata"]["name"], body)
