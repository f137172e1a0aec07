"""What a hostile run makes, and what it says about its manager."""

import random
import subprocess
from pathlib import Path

import pytest

from tests.hostile.objects import OddObjects, collections
from tests.hostile.run import LAST_LINES, Manager


def test_of_a_manager_that_has_ended_it_shows_how(tmp_path: Path) -> None:
    log = tmp_path / "kcm.log"
    log.write_text("".join(f"line {number}\n" for number in range(LAST_LINES + 1)))
    process = subprocess.Popen(["sh", "-c", "exit 3"])
    process.wait()
    told = Manager(process, 1, log).ended()
    assert told.startswith("kcm has ended, exit code 3:\n  line 1\n")
    assert told.endswith(f"\n  line {LAST_LINES}")


@pytest.mark.parametrize("spec", [None, [], {}, {"names": None}, {"names": "x"}])
def test_an_odd_definition_has_a_name_of_its_own(spec: object) -> None:
    (collection,) = (one for one in collections() if one.endswith("customresourcedefinitions"))
    made = OddObjects(random.Random(1), {})._odd(collection, {"spec": spec}, None).body
    assert made["metadata"]["name"].partition(".")[0] == made["spec"]["names"]["plural"]
