"""The two rounds of mutation: a plugin that ran before another one changed the object may run once more.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}/mutating/reinvocationcontext.go
"""

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.types import Attributes


class Reinvocation:
    """Keeps book for one plugin and one write."""

    def __init__(self) -> None:
        self._waiting: set[object] = set()
        self._again: set[object] = set()
        self._left = b""

    def begin(self, attrs: Attributes) -> None:
        """The second round begins: what has changed since the end of the first counts."""
        if self._waiting and codec.encode(attrs.obj) != self._left:
            self.changed()

    def end(self, attrs: Attributes) -> None:
        """The plugin's part of a round is over."""
        if self._waiting:
            self._left = codec.encode(attrs.obj)

    def changed(self) -> None:
        """The object has changed: those that were asked before have to see that."""
        self._again |= self._waiting
        self._waiting.clear()

    def asked(self, key: object) -> None:
        """One that wants to be asked again if need be has been asked."""
        self._waiting.add(key)

    def wanted(self, key: object) -> bool:
        """Whether the second round is for this one."""
        return key in self._again


class Rounds(msgspec.Struct):
    """The state of one write. needed: whether there has to be a second round."""

    second: bool = False
    needed: bool = False
    policies: Reinvocation = msgspec.field(default_factory=Reinvocation)
    webhooks: Reinvocation = msgspec.field(default_factory=Reinvocation)
