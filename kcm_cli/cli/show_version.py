"""What ``kcm --version`` prints."""

import sys

from kcm_cli.component.version import OWN_VERSION, SERVERS, TESTED


def show() -> None:
    """Print upstream's line, alone on standard output as scripts expect it, and the API servers on standard error."""
    sys.stdout.write(f"Kubernetes {OWN_VERSION}\n")
    sys.stdout.flush()  # if nobody reads that, nothing else is printed
    servers = " and ".join(f"v{one}" for one in SERVERS)
    sys.stderr.write(f"For API servers {servers}; tested with kube-apiserver {TESTED}.\n")
