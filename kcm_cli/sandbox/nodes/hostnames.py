"""A pod's host names, and the files with them that a kubelet writes into containers.

upstream: pkg/kubelet/kubelet_pods.go#GeneratePodHostNameAndDomain, managedHostsFileContent
"""

from kcm_cli.sandbox.views import SimulatedPod

_LONGEST, _DOMAIN = 63, "svc.cluster.local"
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


def file_of(pod: SimulatedPod, path: str) -> bytes | None:
    """Return the content of ``/etc/hostname`` or ``/etc/hosts``, or None for other files and for the node's own."""
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


def _short(pod: SimulatedPod) -> str:
    spec = pod.spec
    name = spec.node_name if spec.host_network else spec.hostname_override or spec.hostname or pod.name
    return name[:_LONGEST].rstrip("-.")
