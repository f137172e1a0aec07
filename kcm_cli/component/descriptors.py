"""How many files and sockets this process may have open.

Each watch has a connection of its own: more than a thousand kinds need more than the 1,024 descriptors that most
services and containers begin with (macOS: 256). They may ask for more, as Go programs do at their start.

source: os/rlimit.go in Go
"""

import resource

ENOUGH = 65_536
"""As in the unit for systemd. Not as many as there may be: this is what plugins and drivers begin with, too, and some
programs go through all that they may have."""
_MACOS = 10_240
"""The most that macOS allows, where it says that there is no limit."""


def allow_many() -> None:
    """Raise the limit, as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    for enough in (ENOUGH, _MACOS):
        wanted = enough if hard == resource.RLIM_INFINITY else min(enough, hard)
        if soft == resource.RLIM_INFINITY or wanted <= soft:
            return
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            continue
        return
