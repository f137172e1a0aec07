"""Expressions of policies and webhooks: whether they can be compiled, and to what they evaluate.

Source: apiserver pkg/admission/plugin/cel/compile.go.
"""

import re
from collections.abc import Mapping, Sequence

from kcm_cli.api.policy_expressions import environment, problem, variable_type
from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.lexer import RESERVED
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

Variables = Mapping[str, cel.Type] | None
"""The types of a policy's variables; None for one without any."""

_identifier = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


def is_identifier(name: str) -> bool:
    """Whether a variable can have this name."""
    return bool(_identifier(name)) and name not in RESERVED


def validate_expression(
    text: str,
    path: str,
    returns: Sequence[cel.Type],
    *,
    params: bool,
    authorizer: bool = True,
    patches: bool = False,
    variables: Variables = None,
) -> list[FieldError]:
    """An expression that must evaluate to one of these types (none: to anything)."""
    known = environment(params=params, authorizer=authorizer, patches=patches, variables=variables)
    why = problem(text, known, returns)
    return [errors.invalid(path, text, why)] if why else []


def variable_types(variables: Sequence[Tree], *, params: bool) -> Variables:
    """The types of variables, of which each can use those before it."""
    found: dict[str, cel.Type] = {}
    for variable in variables:
        known = environment(params=params, variables=dict(found))
        found[variable.get("name", "")] = variable_type(variable.get("expression", ""), known)
    return found or None
