"""The cluster of the tests: three nodes, the controllers, and what is deployed with the operator."""

from pathlib import Path

import pytest
from kcm_cli.testing import HostOptions

DEPLOY = Path(__file__).parents[1] / "deploy"


@pytest.fixture(scope="session")
def kcm_options() -> HostOptions:
    return HostOptions(nodes=3, manifests=(DEPLOY / "crd.yaml", DEPLOY / "rbac.yaml"))
