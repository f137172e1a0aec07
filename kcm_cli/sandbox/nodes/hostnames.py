"""A pod's host names, and the files with names that a kubelet writes into containers.

upstream: pkg/kubelet/kubelet_pods.go#GeneratePodHostNameAndDomain, managedHostsFileContent,
pkg/kubelet/network/dns/dns.go
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from kcm_cli.sandbox import networks
from kcm_cli.sandbox.views import SimulatedPod

_LONGEST, _LONGEST_FQDN, _CLUSTER = 63, 64, "cluster.local"
_MOST_SERVERS, _MOST_SEARCHES, _LONGEST_SEARCH, _LONGEST_SEARCHES = 3, 32, 253, 2048
"""The limits for a resolver: name servers, domains to search, the length of one, and of all in a line."""
_DOMAIN = f"svc.{_CLUSTER}"
_HOSTS = """\
# Kubernetes-managed hosts file.
127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
fe00::0\tip6-mcastprefix
fe00::1\tip6-allnodes
fe00::2\tip6-allrouters
"""


def hostname_of(pod: SimulatedPod) -> str:
    """Return the host name that containers see."""
    return fqdn_of(pod) if pod.spec.set_hostname_as_fqdn else _short(pod)


def fqdn_of(pod: SimulatedPod) -> str:
    """Return the host name, with its domain if it has one."""
    spec = pod.spec
    if spec.host_network or spec.hostname_override is not None or not spec.subdomain:
        return _short(pod)
    return f"{_short(pod)}.{spec.subdomain}.{pod.namespace}.{_DOMAIN}"


def file_of(pod: SimulatedPod, path: str, server: str = "") -> bytes | None:
    """Return the content of ``/etc/hostname``, ``/etc/hosts`` or ``/etc/resolv.conf``, or None for other files and for
    the node's own.

    server: the address of the API server's Service, if it is known.
    """
    if path == "/etc/resolv.conf":
        return _resolver(pod, server).encode()
    if path == "/etc/hostname":
        return f"{hostname_of(pod)}\n".encode()
    if path != "/etc/hosts" or pod.spec.host_network:
        return None
    names = fqdn_of(pod) if fqdn_of(pod) == _short(pod) else f"{fqdn_of(pod)}\t{_short(pod)}"
    text = _HOSTS + "".join(f"{each.ip}\t{names}\n" for each in pod.status.pod_ips)
    if pod.spec.host_aliases:
        aliases = ("\t".join((each.ip, *each.hostnames)) for each in pod.spec.host_aliases)
        text += "\n# Entries added by HostAliases.\n" + "".join(f"{line}\n" for line in aliases)
    return text.encode()


def problem_of(pod: SimulatedPod) -> str:
    """Why a pod cannot have its host name; empty if it can."""
    name = fqdn_of(pod)
    if not pod.spec.set_hostname_as_fqdn or name == _short(pod) or len(name) <= _LONGEST_FQDN:
        return ""
    return (
        f"failed to construct FQDN from pod hostname and cluster domain, FQDN {name} is too long ({_LONGEST_FQDN} "
        f"characters is the max, {len(name)} characters requested)"
    )


def left_out(pod: SimulatedPod, server: str) -> Iterator[str]:
    """What is left out of the resolver's configuration of a pod, since it has limits: a message for each kind."""
    given, used = _named(pod, server), _fitting(_named(pod, server))
    if given.servers != used.servers:
        yield (
            "Nameserver limits were exceeded, some nameservers have been omitted, the applied nameserver line is: "
            + " ".join(used.servers)
        )
    if given.searches != used.searches:
        yield (
            "Search Line limits were exceeded, some search paths have been omitted, the applied search line is: "
            + " ".join(used.searches)
        )


class _Resolver(msgspec.Struct, frozen=True):
    servers: Sequence[str]
    searches: Sequence[str]
    options: Mapping[str, str]


def _named(pod: SimulatedPod, server: str) -> _Resolver:
    """The resolver that a pod asks for. That of a node is empty, as of a kubelet with ``--resolv-conf=``."""
    spec = pod.spec
    policy = spec.dns_policy or "ClusterFirst"
    servers: list[str] = []
    searches: list[str] = []
    options: dict[str, str] = {}
    if policy == "ClusterFirstWithHostNet" or (policy == "ClusterFirst" and not spec.host_network):
        servers = list(filter(None, [networks.dns_beside(server)]))
        searches = [f"{pod.namespace}.svc.{_CLUSTER}", f"svc.{_CLUSTER}", _CLUSTER]
        options = {"ndots": "5"}
    elif policy != "None":
        servers, searches = ["127.0.0.1"], ["."]
    if (more := spec.dns_config) is not None:
        servers = list(dict.fromkeys([*servers, *more.nameservers]))
        searches = list(dict.fromkeys([*searches, *more.searches]))
        options |= {each.name: each.value or "" for each in more.options}
    return _Resolver(servers, searches, options)


def _fitting(asked: _Resolver) -> _Resolver:
    """A resolver within the limits. Of a line that is too long, the last domains are left out."""
    searches = [each for each in asked.searches[:_MOST_SEARCHES] if len(each) <= _LONGEST_SEARCH]
    while len(" ".join(searches)) > _LONGEST_SEARCHES:
        searches.pop()
    return _Resolver(asked.servers[:_MOST_SERVERS], searches, asked.options)


def _resolver(pod: SimulatedPod, server: str) -> str:
    """The resolver's configuration of a pod."""
    used = _fitting(_named(pod, server))
    text = f"search {' '.join(used.searches)}\n" if used.searches else ""
    text += "".join(f"nameserver {server}\n" for server in used.servers)
    shown = " ".join(f"{name}:{value}" if value else name for name, value in used.options.items())
    return text + (f"options {shown}\n" if shown else "")


def _short(pod: SimulatedPod) -> str:
    spec = pod.spec
    name = spec.node_name if spec.host_network else spec.hostname_override or spec.hostname or pod.name
    return name[:_LONGEST].rstrip("-.")
