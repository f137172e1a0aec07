"""Feature gates that kube-controller-manager reads and kcm does not, with the reason.

Gates that are locked in every release that can be emulated are left out: they cannot be set, and kcm behaves as if they
were read.
"""

from collections.abc import Mapping

_CACHES = "it is about how the caches of Go's client library work inside"
_CBOR = "kcm speaks JSON"

INERT: Mapping[str, str] = {
    "AtomicFIFO": _CACHES,
    "AuthorizeWithSelectors": "no resources are served here, so that no request has selectors",
    "CBORServingAndStorage": _CBOR,
    "CSIVolumeHealth": "it is about what kubelets report of volumes",
    "ClientsAllowCARotation": "a CA file that changes is always read again",
    "ClientsAllowCBOR": _CBOR,
    "ClientsAllowTLSCacheGC": "connections are given up with the clients that opened them",
    "ClientsPreferCBOR": _CBOR,
    "ContextualLogging": "kcm's log lines always carry their context",
    "InOrderInformers": _CACHES,
    "InOrderInformersBatchProcess": _CACHES,
    "MutableCSINodeAllocatableCount": "it is about what kubelets report of volumes",
    "RestartAllContainersOnContainerExits": "it is about what kubelets do with a pod's containers",
    "SELinuxMount": "it is about how kubelets mount volumes",
    "UnauthenticatedHTTP2DOSMitigation": "kcm serves HTTP/1.1",
    "UnlockWhileProcessingFIFO": _CACHES,
}
