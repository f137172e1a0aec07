"""What a hostile run makes, and what it says about its manager."""

import asyncio
import random
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.differential.compare import Server
from tests.hostile.objects import OddObjects, collections
from tests.hostile.run import LAST_LINES, Manager
from tests.hostile.work import Place


def test_of_a_manager_that_has_ended_it_shows_how(tmp_path: Path) -> None:
    log = tmp_path / "kcm.log"
    log.write_text("".join(f"line {number}\n" for number in range(LAST_LINES + 1)))
    process = subprocess.Popen(["sh", "-c", "exit 3"])
    process.wait()
    ending = Manager(process, 1, log).ended()
    assert ending.startswith("kcm has ended, exit code 3:\n  line 1\n")
    assert ending.endswith(f"\n  line {LAST_LINES}")


@pytest.mark.parametrize("spec", [None, [], {}, {"names": None}, {"names": "x"}])
def test_an_odd_definition_has_a_name_of_its_own(spec: object) -> None:
    (collection,) = (one for one in collections() if one.endswith("customresourcedefinitions"))
    made = OddObjects(random.Random(1), {})._odd(collection, {"spec": spec}, None).body
    assert made["metadata"]["name"].partition(".")[0] == made["spec"]["names"]["plural"]


class Vanishing:
    """An API server whose pods of a Job are gone as soon as both have succeeded."""

    def __init__(self) -> None:
        self.left = {"a", "b"}

    async def ask(self, method: str, path: str, body: object = None) -> Any:
        if method == "PUT":
            self.left -= {path.split("/")[-2]}
            return SimpleNamespace(status=200, body=body)
        return SimpleNamespace(status=200, body={"items": [{"metadata": {"name": name}} for name in sorted(self.left)]})


def test_pods_that_are_gone_once_they_have_succeeded_have_succeeded() -> None:
    async def main() -> None:
        async with asyncio.timeout(5):
            await Place(cast(Server, Vanishing()), "work").run_pods("task", 2, "Succeeded")

    asyncio.run(main())
