"""Fixtures for tests against a whole control plane in this process (docs/testing-operators.md).

``kcm_sandbox`` is started once per session, ``kcm_namespace`` is a fresh namespace for each test. The controllers are
brought by ``kcm_cli.cli.pytest_plugin``, which is what pytest loads: the sandbox itself knows none.
"""

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from kcm_cli.sandbox.hosted import Companion, HostedSandbox, HostOptions

_READ_AT_IMPORT = ("kubernetes.config.kube_config", "kubernetes_asyncio.config.kube_config")
"""Modules that look at KUBECONFIG once and for all."""


@pytest.fixture(scope="session")
def kcm_options() -> "HostOptions":
    """What the sandbox is made of; override it in a conftest.py."""
    from kcm_cli.sandbox.hosted import HostOptions  # imported here: pytest loads this module in every project

    return HostOptions()


@pytest.fixture(scope="session")
def kcm_companion() -> "Companion | None":
    """What runs with the sandbox."""
    return None


@pytest.fixture(scope="session")
def kcm_sandbox(kcm_options: "HostOptions", kcm_companion: "Companion | None") -> "Iterator[HostedSandbox]":
    """A fresh cluster for this session. KUBECONFIG names it, so that clients find it by themselves."""
    from kcm_cli.sandbox.hosted import HostedSandbox

    with HostedSandbox(kcm_options, kcm_companion) as sandbox, pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", sandbox.kubeconfig)
        for name in _READ_AT_IMPORT:
            if name in sys.modules:
                patch.setattr(sys.modules[name], "KUBE_CONFIG_DEFAULT_LOCATION", sandbox.kubeconfig)
        yield sandbox


@pytest.fixture
def kcm_namespace(kcm_sandbox: "HostedSandbox") -> Iterator[str]:
    """The name of a fresh namespace; it is deleted after the test."""
    from kcm_cli.sandbox.hosted import unique_name

    name = unique_name("test")
    try:
        kcm_sandbox.make_namespace(name)
        yield name
    finally:
        kcm_sandbox.drop_namespace(name)


@pytest.fixture
def kcm_kubeconfig(kcm_sandbox: "HostedSandbox") -> str:
    """The path of the administrator's kubeconfig."""
    return kcm_sandbox.kubeconfig
