"""Checks literals: patterns, timestamps, format templates, and lists with elements of several types.

upstream: cel-go cel/validator.go, ext/formatting.go
"""

from collections.abc import Iterator, Mapping

from kcm_cli.machinery.cel.formatting import template_problem
from kcm_cli.machinery.cel.functions import FUNCTIONS
from kcm_cli.machinery.cel.string_functions import pattern
from kcm_cli.machinery.cel.syntax import Call, Constant, ListNode, MapNode, Node, children_of, nodes_of
from kcm_cli.machinery.cel.types import Type, unwrapped
from kcm_cli.machinery.cel.values import CelError

Problem = tuple[int, str]
"""Offset and message."""

_TIMES = ("duration", "timestamp")


def bad_literals(node: Node, types: Mapping[int, Type]) -> Iterator[Problem]:
    """The errors in a checked tree."""
    for each in nodes_of(node):
        if isinstance(each, Call) and each.args:
            yield from _bad_argument(each)
            yield from _bad_format(each, types)
    yield from _mixed(node, types)


def _bad_argument(call: Call) -> Iterator[Problem]:
    literal = call.args[0]
    if not isinstance(literal, Constant) or not isinstance(literal.value, str | int):
        return
    try:
        if call.function == "matches" and isinstance(literal.value, str):
            pattern(literal.value)
        elif call.function in _TIMES and call.target is None:
            FUNCTIONS[call.function](literal.value)
    except CelError:
        yield literal.offset, f"invalid {call.function} argument"


def _bad_format(call: Call, types: Mapping[int, Type]) -> Iterator[Problem]:
    """The error of a template that does not match its arguments."""
    template, args = call.target, call.args[0]
    if call.function != "format" or not isinstance(template, Constant) or not isinstance(args, ListNode):
        return
    if isinstance(template.value, str) and (problem := template_problem(template.value, args.elements, types)):
        place, message = problem
        yield call.offset if place is None else place, message


def _mixed(node: Node, types: Mapping[int, Type]) -> Iterator[Problem]:
    """Errors of lists and maps with elements of several types, except arguments of ``format``."""
    if isinstance(node, Call) and node.function == "format":
        return
    if isinstance(node, ListNode):
        members = [(each, index in node.optional) for index, each in enumerate(node.elements)]
        yield from _differing(members, types)
    elif isinstance(node, MapNode):
        yield from _differing([(key, False) for key, _, _ in node.entries], types)
        yield from _differing([(value, optional) for _, value, optional in node.entries], types)
    for below in children_of(node):
        yield from _mixed(below, types)


def _differing(members: list[tuple[Node, bool]], types: Mapping[int, Type]) -> Iterator[Problem]:
    first: Type | None = None
    for node, optional in members:
        kind = types[id(node)]
        if optional:
            kind = unwrapped(kind)[0]
        if first is None:
            first = kind
        elif kind != first:
            yield node.offset, f"expected type '{first}' but found '{kind}'"
            return
