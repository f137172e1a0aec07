"""pytest in a process of its own that has its modules already: forked from one that does nothing but import them."""

import multiprocessing
import os
import sys
from pathlib import Path

import pytest

from tests.kit.places import ROOT

_CLIENTS = ("kopf", "kubernetes.client.api", "kubernetes_asyncio", "uvloop")
_CONTROLLERS = [path.parent.name for path in sorted((ROOT / "kcm_cli" / "controllers").glob("*/controller.py"))]
_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    [
        __name__,
        "kcm_cli.testing.sandbox",
        *_CLIENTS,
        *(f"kcm_cli.controllers.{name}.controller" for name in _CONTROLLERS),
    ]
)


def run_pytest(folder: Path, *words: str, timeout_s: float = 600.0) -> tuple[int | None, str]:
    """The exit code and output of pytest in this folder; no code if it took too long."""
    process = _context.Process(target=_run, args=(folder, words))
    process.start()
    process.join(timeout_s)
    code = process.exitcode
    process.kill()
    return code, (folder / "output").read_text()


def _run(folder: Path, words: tuple[str, ...]) -> None:
    os.chdir(folder)
    with open("output", "wb", buffering=0) as output:
        for stream in (1, 2):
            os.dup2(output.fileno(), stream)
    sys.path.insert(0, str(folder))
    sys.exit(pytest.main(list(words)))
