"""kcm that records no causes, to see what the record costs: ``python -m tests.bench.without_causes FLAG...``."""

import asyncio
import sys

from msgspec.structs import replace

from kcm_cli.cli.main import main
from kcm_cli.manager import lifecycle
from kcm_cli.manager.controllers import RunContext, run_controllers


def _unrecorded(run: RunContext, stop: asyncio.Event) -> object:
    return run_controllers(replace(run, causes=None), stop)


if __name__ == "__main__":
    setattr(lifecycle, run_controllers.__name__, _unrecorded)  # in place of the same function
    sys.exit(main())
