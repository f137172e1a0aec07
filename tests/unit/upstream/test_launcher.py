"""What the launcher of upstream's tests sets is there, and is read where it is set."""

import json
import subprocess
import sys

import pytest

from tests.kit.places import ROOT
from tests.upstream.launcher import TUNABLE, tune

CONTROLLERS = sorted({path.split(".")[1] for path in TUNABLE})
SEEN = """
import importlib, json, pkgutil
from tests.upstream.launcher import TUNABLE, tune
tune(dict.fromkeys(TUNABLE, 4711))
names = {path.partition(":")[2] for path in TUNABLE}
found = {}
for controller in json.loads(input()):
    package = f"kcm_cli.controllers.{controller}"
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, package + "."):
        members = vars(importlib.import_module(module.name))
        place = module.name.removeprefix("kcm_cli.")
        found.update({f"{place}:{name}": members[name] for name in names & members.keys()})
print(json.dumps(found))
"""


def test_every_constant_is_set_where_it_is_read() -> None:
    """Also in modules that import it by name: one that was loaded earlier would go on with the old value."""
    words = [sys.executable, "-c", SEEN]
    done = subprocess.run(words, input=json.dumps(CONTROLLERS), capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found.keys() >= TUNABLE
    assert {path: value for path, value in found.items() if value != 4711} == {}


@pytest.mark.parametrize("path", ["controllers.job.plan.spec:NOPE", "cli.main:main"])
def test_other_names_are_refused(path: str) -> None:
    with pytest.raises(KeyError, match=path):
        tune({path: 1})
