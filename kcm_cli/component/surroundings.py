"""What a manager stands in that no option says. Controllers ask their context for it, as for their options."""

import msgspec


class Host(msgspec.Struct, frozen=True):
    """This machine. ``simulated_nodes``: the nodes are simulated, so that nothing on it is theirs."""

    simulated_nodes: bool = False


class ServerCA(msgspec.Struct, frozen=True):
    """The API server's CA (PEM), where the kubeconfig holds it itself, not in a file."""

    pem: bytes = b""


DEFAULTS = (Host(), ServerCA())
