"""Runs kcm without what Linux has and macOS lacks: ``python -m tests.kit.elsewhere [KCM'S WORDS...]``."""

import os
import socket
import sys
import time

_LACKS = {
    socket: ("TCP_KEEPIDLE", "TCP_USER_TIMEOUT", "SOCK_CLOEXEC", "SOCK_NONBLOCK"),
    time: ("CLOCK_BOOTTIME",),
    os: ("waitid", "memfd_create", "eventfd", "pidfd_open", "posix_fadvise"),
}


def main() -> None:
    """Remove the names, which kcm must not have been imported before, and run it."""
    for module, names in _LACKS.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
    from kcm_cli.cli.main import main as kcm

    kcm()


if __name__ == "__main__":
    sys.argv[0] = "kcm"
    main()
