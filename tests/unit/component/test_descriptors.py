"""How many descriptors a process asks for."""

import resource
import subprocess
import sys

import pytest

from kcm_cli.component import descriptors
from kcm_cli.component.descriptors import ENOUGH, allow_many

HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
PROGRAM = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (256, {hard}))
from kcm_cli.component.loops import run_process
async def main():
    return resource.getrlimit(resource.RLIMIT_NOFILE)
print(*run_process(main()))
"""


@pytest.mark.parametrize("hard", [256, 512, HARD])
def test_a_process_may_open_as_many_files_as_the_system_allows(hard: int) -> None:
    command = [sys.executable, "-c", PROGRAM.format(hard=hard)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout.split() == [str(hard if hard != HARD or 0 < HARD < ENOUGH else ENOUGH), str(hard)]


class System:
    """Limits, of which the system takes none above ``most``."""

    def __init__(self, soft: int, hard: int, most: int = 1 << 30) -> None:
        self.soft, self.hard, self.most, self.asked = soft, hard, most, list[int]()

    def getrlimit(self, which: int) -> tuple[int, int]:
        return self.soft, self.hard

    def setrlimit(self, which: int, limits: tuple[int, int]) -> None:
        self.asked.append(limits[0])
        if limits[0] > self.most:
            raise ValueError("current limit exceeds maximum limit")
        self.soft, self.hard = limits


@pytest.mark.parametrize(
    ("system", "wanted"),
    [
        (System(256, resource.RLIM_INFINITY, most=10_240), 10_240),
        (System(256, resource.RLIM_INFINITY, most=100), 256),
        (System(1_024, 1 << 20), ENOUGH),
        (System(1 << 20, 1 << 20), 1 << 20),
        (System(resource.RLIM_INFINITY, resource.RLIM_INFINITY), resource.RLIM_INFINITY),
    ],
    ids=["macOS", "nothing helps", "many", "enough already", "no limit"],
)
def test_limits(system: System, wanted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    hard = system.hard
    monkeypatch.setattr(descriptors.resource, "getrlimit", system.getrlimit)
    monkeypatch.setattr(descriptors.resource, "setrlimit", system.setrlimit)
    allow_many()
    assert (system.soft, system.hard) == (wanted, hard)
