"""Objects as values of log lines.

upstream: k8s.io/klog/v2 k8s_references.go
"""

from typing import Protocol

import msgspec

from kcm_cli.machinery.meta import object_key


class KRef(msgspec.Struct, frozen=True, omit_defaults=True):
    """An object in a log line: ``namespace/name`` as text, ``{"name": ..., "namespace": ...}`` as JSON."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return object_key(self.namespace, self.name)


class Named(Protocol):
    """An object with a namespace and a name."""

    @property
    def namespace(self) -> str: ...
    @property
    def name(self) -> str: ...


def kobj(obj: Named) -> KRef:
    """An object as a value of a line."""
    return KRef(obj.name, obj.namespace)


def kref(key: str) -> KRef:
    """The object of a key, ``namespace/name`` or ``name``, as a value of a line."""
    namespace, _, name = key.rpartition("/")
    return KRef(name, namespace)
