"""What a manager stands in that no option says. Controllers ask their context for it, as for their options."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Host:
    """This machine. ``simulated_nodes``: the nodes are simulated, so that nothing on it is theirs."""

    simulated_nodes: bool = False


@dataclass(frozen=True, slots=True)
class ServerCA:
    """The API server's CA (PEM), where the kubeconfig holds it itself, not in a file."""

    pem: bytes = b""


DEFAULTS = (Host(), ServerCA())
