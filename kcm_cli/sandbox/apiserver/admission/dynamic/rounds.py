"""Reinvocation: policies and webhooks that ran before another one changed the object may run a second time.

upstream: staging/src/k8s.io/apiserver/pkg/admission/plugin/{webhook,policy}/mutating/reinvocationcontext.go
"""

import msgspec

from kcm_cli.machinery import codec
from kcm_cli.sandbox.apiserver.types import Attributes


class Reinvocation:
    """The reinvocations of the policies, or of the webhooks, for a write."""

    def __init__(self) -> None:
        self._invoked: set[object] = set()
        self._due: set[object] = set()
        self._last = b""

    def begin(self, attrs: Attributes) -> None:
        """Begin the second round. Notices changes since the end of the first."""
        if self._invoked and codec.encode(attrs.obj) != self._last:
            self.changed()

    def end(self, attrs: Attributes) -> None:
        """End a round."""
        if self._invoked:
            self._last = codec.encode(attrs.obj)

    def changed(self) -> None:
        """The object has changed: those that have been invoked are due again."""
        self._due |= self._invoked
        self._invoked.clear()

    def add(self, key: object) -> None:
        """Record the invocation of one whose reinvocationPolicy is IfNeeded."""
        self._invoked.add(key)

    def due(self, key: object) -> bool:
        """Whether to invoke this one in the second round."""
        return key in self._due


class Rounds(msgspec.Struct):
    """The state of mutation for a write. second: in the second round; needed: a second round is necessary."""

    second: bool = False
    needed: bool = False
    policies: Reinvocation = msgspec.field(default_factory=Reinvocation)
    webhooks: Reinvocation = msgspec.field(default_factory=Reinvocation)
