"""The pytest plugin: the sandbox's fixtures, with the controllers in it, and twins of clusters."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest

from kcm_cli.sandbox.pytest_plugin import (
    kcm_kubeconfig,
    kcm_namespace,
    kcm_options,
    kcm_sandbox,
    kcm_start,
    pytest_runtest_makereport,
)

if TYPE_CHECKING:
    from kcm_cli.plan.testing import TwinOf
    from kcm_cli.sandbox.hosted import Companion
    from kcm_cli.sandbox.run import Sandbox

__all__ = [
    "kcm_companion",
    "kcm_kubeconfig",
    "kcm_namespace",
    "kcm_options",
    "kcm_sandbox",
    "kcm_start",
    "kcm_twin",
    "pytest_runtest_makereport",
]


@pytest.fixture(scope="session")
def kcm_companion() -> "Companion | None":
    """The controllers."""
    return _run_controllers


@pytest.fixture(scope="session")
def kcm_twin() -> "type[TwinOf]":
    """Makes twins of clusters: ``kcm_twin("cluster.kcm").plan(Drain("node-1"))`` (docs/plan.md)."""
    from kcm_cli.plan.testing import TwinOf  # imported here: pytest loads this module everywhere

    return TwinOf


def _run_controllers(
    sandbox: "Sandbox", stop: asyncio.Event, flags: tuple[str, ...], ready: Callable[[], object]
) -> Awaitable[int]:
    from kcm_cli.cli.sandbox_manager import SandboxManager  # imported here: pytest loads this module everywhere

    alone = ("--leader-elect=false", "--secure-port=0")
    return SandboxManager(sandbox, (*alone, *flags)).accompany(stop, ready)
