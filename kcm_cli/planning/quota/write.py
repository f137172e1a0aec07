"""A write as quota evaluators see it."""

from typing import Protocol

from kcm_cli.planning.pod_resources import Tree


class Write(Protocol):
    """operation: CREATE, UPDATE or DELETE. obj, old: the documents after and before."""

    @property
    def operation(self) -> str: ...
    @property
    def subresource(self) -> str: ...
    @property
    def obj(self) -> Tree | None: ...
    @property
    def old(self) -> Tree | None: ...
