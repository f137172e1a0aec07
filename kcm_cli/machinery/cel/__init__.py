"""CEL, the expression language of admission policies and schemas, with Kubernetes' libraries.

``Program`` runs an expression; ``check`` type checks it. Expressions work on JSON values directly, and are compiled to
closures: a run takes some microseconds.

Compared: cel-python 0.5 (0.4 s to start, 0.3 to 1 ms a run, no optionals, no Kubernetes libraries, other error texts,
no type check). The texts and the check are part of the API.

upstream: cel-go 0.26, staging/src/k8s.io/apiserver/pkg/cel
"""

from kcm_cli.machinery.cel.check import Checked, Environment, check
from kcm_cli.machinery.cel.errors import CelProblem, CelSyntaxError, CelTypeError, located
from kcm_cli.machinery.cel.interpret import Lazy, MadeObject
from kcm_cli.machinery.cel.meter import CelCancelled
from kcm_cli.machinery.cel.program import Program, failed_conversion
from kcm_cli.machinery.cel.types import Type
from kcm_cli.machinery.cel.values import NONE, CelError, Duration, Optional, Uint, Value

__all__ = [
    "NONE",
    "CelCancelled",
    "CelError",
    "CelProblem",
    "CelSyntaxError",
    "CelTypeError",
    "Checked",
    "Duration",
    "Environment",
    "Lazy",
    "MadeObject",
    "Optional",
    "Program",
    "Type",
    "Uint",
    "Value",
    "check",
    "failed_conversion",
    "located",
]
