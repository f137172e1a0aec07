"""The former place of the pytest plugin, for checkouts that were installed before it moved to ``kcm_cli.testing``."""

from kcm_cli.testing.pytest_plugin import *  # noqa: F403
