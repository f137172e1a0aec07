"""``kcm sandbox``: what it logs."""

import logging

import pytest

from kcm_cli.cli import sandbox


@pytest.mark.parametrize(("verbosity", "quiet"), [(0, True), (1, False)])
def test_the_start_of_controllers_is_told_from_verbosity_one_on(verbosity: int, quiet: bool) -> None:
    """The manager's lines at V(0) about it would push the sandbox's address off the screen."""
    about = [logging.getLogger(name) for name in sandbox._ABOUT_STARTS]
    own = [logger.level for logger in about]
    with sandbox._quiet(verbosity):
        assert [logger.level for logger in about] == ([logging.WARNING] * len(about) if quiet else own)
    assert [logger.level for logger in about] == own
