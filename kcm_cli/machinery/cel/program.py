"""A compiled expression."""

from kcm_cli.machinery.cel.comprehensions import Scope
from kcm_cli.machinery.cel.errors import CelSyntaxError
from kcm_cli.machinery.cel.interpret import compile_node
from kcm_cli.machinery.cel.meter import CelCancelled, Meter, OverLimit, fixed
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.cel.syntax import Call, Constant, Node, nodes_of
from kcm_cli.machinery.cel.values import CelError, Value

_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
_TOO_DEEP = "expression recursion limit exceeded"
_TOO_COSTLY = "operation cancelled: actual cost limit exceeded"


class Program:
    """An expression, compiled once and run often."""

    def __init__(self, text: str, node: Node | None = None) -> None:
        """Raises CelSyntaxError."""
        self.text = text
        self.node = parse(text) if node is None else node
        self._meter = Meter()
        try:
            self._run = compile_node(self.node, self._meter)
            self._fixed = fixed(self.node)
        except RecursionError:
            raise CelSyntaxError(_TOO_DEEP) from None

    @property
    def cost(self) -> int:
        """The cost of the last run."""
        return self._meter.cost

    def evaluate(self, scope: Scope) -> Value:
        """The value with these variables, which are JSON values. Raises CelError, and CelCancelled if it exceeds the
        cost limit."""
        meter = self._meter
        meter.cost = self._fixed
        try:
            value = self._run(scope)
            meter.check()
        except OverLimit:
            raise CelCancelled(_TOO_COSTLY) from None
        except RecursionError:
            raise CelError(_TOO_DEEP) from None
        return value


def failed_conversion(node: Node) -> str:
    """Why a conversion of a literal fails, as it does whatever the variables are; empty if none does.

    upstream: cel-go interpreter/decorators.go#maybeOptimizeConstUnary
    """
    for each in nodes_of(node):
        if not isinstance(each, Constant) and _constant(each):
            try:
                Program("", each).evaluate({})
            except CelError as error:
                return str(error)
    return ""


def _constant(node: Node) -> bool:
    if isinstance(node, Call) and node.function in _CONVERSIONS and node.target is None and len(node.args) == 1:
        return _constant(node.args[0])
    return isinstance(node, Constant)
