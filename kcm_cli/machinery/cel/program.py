"""An expression that is ready to run."""

from kcm_cli.machinery.cel.comprehensions import Scope
from kcm_cli.machinery.cel.interpret import compile_node
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Node
from kcm_cli.machinery.cel.values import Value


class Program:
    """Compiled once, run often."""

    def __init__(self, text: str, node: Node | None = None) -> None:
        """Raises CelSyntaxError."""
        self.text = text
        self.node = parse(text) if node is None else node
        self._run = compile_node(self.node)

    def evaluate(self, scope: Scope) -> Value:
        """The value with these variables (JSON values are taken as they are). Raises CelError."""
        return self._run(scope)
