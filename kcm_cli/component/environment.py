"""A manager's environment beyond its options. Controllers get it from their context, like options."""

import msgspec


class Host(msgspec.Struct, frozen=True):
    """This machine. ``simulated_nodes``: whether the nodes are simulated, and have nothing on this machine."""

    simulated_nodes: bool = False


class ServerCA(msgspec.Struct, frozen=True):
    """The API server's CA (PEM), where it is inline in the kubeconfig."""

    pem: bytes = b""


DEFAULTS = (Host(), ServerCA())
