"""What tests change of this process, and put back."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unchanged_logging() -> Iterator[None]:
    """Restores the handlers and levels of the loggers that ``component.logs.setup`` changes."""
    root, ours = logging.getLogger(), logging.getLogger("kcm_cli")
    handlers, levels = list(root.handlers), (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    logging.captureWarnings(False)
