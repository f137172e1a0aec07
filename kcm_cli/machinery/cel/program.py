"""An expression that is ready to run."""

from kcm_cli.machinery.cel.comprehensions import Scope
from kcm_cli.machinery.cel.errors import CelSyntaxError
from kcm_cli.machinery.cel.interpret import compile_node
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Node
from kcm_cli.machinery.cel.values import CelError, Value

_TOO_DEEP = "expression recursion limit exceeded"


class Program:
    """Compiled once, run often."""

    def __init__(self, text: str, node: Node | None = None) -> None:
        """Raises CelSyntaxError."""
        self.text = text
        self.node = parse(text) if node is None else node
        try:
            self._run = compile_node(self.node)
        except RecursionError:
            raise CelSyntaxError(_TOO_DEEP) from None

    def evaluate(self, scope: Scope) -> Value:
        """The value with these variables (JSON values are taken as they are). Raises CelError."""
        try:
            return self._run(scope)
        except RecursionError:
            raise CelError(_TOO_DEEP) from None
