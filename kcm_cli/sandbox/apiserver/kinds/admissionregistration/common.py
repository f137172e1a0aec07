"""What the kinds of admissionregistration share."""

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from kcm_cli.api.policy_expressions import environment, problem, variable_type
from kcm_cli.machinery import cel
from kcm_cli.machinery.cel.lexer import RESERVED
from kcm_cli.machinery.cel.parser import parse
from kcm_cli.machinery.labels import format_go, read_label_selector
from kcm_cli.machinery.quoting import quote
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, Layout, at, count, layout, number, shown
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors

Variables = Mapping[str, cel.Type] | None
"""The types of a policy's variables; None for one without any."""

_identifier = re.compile(r"[_a-zA-Z][_a-zA-Z0-9]*").fullmatch


def is_identifier(name: str) -> bool:
    """Whether a variable can have this name."""
    return bool(_identifier(name)) and name not in RESERVED


def validate_expression(
    holder: Tree,
    path: str,
    returns: Sequence[cel.Type],
    known: cel.Environment,
    missing: str = "",
) -> Errors:
    """Check that an object's expression evaluates to one of these types (none: any type).

    known: see ``environment``. missing: the detail of the error for an absent expression.
    """
    text, place = holder.get("expression", ""), f"{path}.expression"
    if not text.strip():
        return [errors.required(place, missing)]
    return checked_expression(text, place, returns, known)


def checked_expression(text: str, path: str, returns: Sequence[cel.Type], known: cel.Environment) -> Errors:
    """The same for the text of an expression."""
    if why := problem(text, known, returns):
        return [errors.invalid(path, text, why)]
    failed = cel.failed_conversion(parse(text))
    return [errors.internal(path, f"program instantiation failed: {failed}")] if failed else []


def environments(variables: Sequence[Tree], *, params: bool) -> Iterator[tuple[Tree, cel.Environment]]:
    """Each variable with its environment, which has the earlier ones until the next one is asked for."""
    found: dict[str, cel.Type] = {}
    for variable in variables:
        known = environment(params=params, variables=found)
        yield variable, known
        found[variable.get("name", "")] = variable_type(variable.get("expression", ""), known)


def variable_types(variables: Sequence[Tree], *, params: bool) -> Variables:
    """The types of variables, each of which can use earlier ones."""
    found = {
        variable.get("name", ""): variable_type(variable.get("expression", ""), known)
        for variable, known in environments(variables, params=params)
    }
    return found or None


def admission_policy(doc: Tree) -> None:
    """Default a ValidatingAdmissionPolicy or MutatingAdmissionPolicy."""
    spec = doc.setdefault("spec", {})
    fill.absent(spec, failurePolicy="Fail")
    _match(spec.get("matchConstraints"))


def admission_policy_binding(doc: Tree) -> None:
    """Default a binding of either."""
    _match(doc.setdefault("spec", {}).get("matchResources"))


def _match(match: Tree | None) -> None:
    if match is not None:
        fill.absent(match, matchPolicy="Equivalent")
        fill_selectors(match)
        fill_scopes(match.get("resourceRules"))
        fill_scopes(match.get("excludeResourceRules"))


def fill_selectors(holder: Tree) -> None:
    """Default the selectors of a webhook or policy."""
    fill.made(holder, "namespaceSelector")
    fill.made(holder, "objectSelector")


def fill_scopes(rules: list[Tree] | None) -> None:
    """Default the scopes of rules."""
    for rule in rules or ():
        fill.absent(rule, scope="*")


_STATIC = ".static.k8s.io"


def of_admission(new: Tree, old: Tree | None) -> list[str]:
    """A warning about a name that is reserved for configuration from files."""
    if not new["metadata"].get("name", "").endswith(_STATIC):
        return []
    rest = "are reserved for static manifest-based configurations and cannot be managed via the API"
    return [f"metadata.name: names ending with {quote(_STATIC)} {rest}"]


POLICY_STRATEGY = Strategy(
    core_finalizers=False,
    generation=True,
    needs_version_on_update=True,
    update_steps=("name", "rules"),
    warn=of_admission,
)
"""The strategy that policies and their bindings share."""


def _param_kind(kind: Tree) -> str:
    return f"{kind.get('apiVersion', '')}/{kind.get('kind', '')}"


def policy_table(name: str, about: str, counted: str) -> Layout:
    """The columns of policies, with the number of ``counted`` items."""
    kind = "ParamKind specifies the kind of resources used to parameterize this policy"
    params = Column("ParamKind", kind, shown("spec.paramKind", UNSET, _param_kind))
    return layout(NAME, number(name, about, count(counted)), params, AGE)


def _param_ref(doc: Tree, now: datetime) -> str:
    reference = (doc.get("spec") or {}).get("paramRef") or {}
    if reference.get("name"):
        return f"{reference.get('namespace') or '*'}/{reference['name']}"
    return UNSET if reference.get("selector") is None else format_go(read_label_selector(reference["selector"]))


POLICY_BINDING = layout(
    NAME,
    Column(
        "PolicyName",
        "PolicyName indicates the policy definition which the policy binding binded to",
        at("spec.policyName"),
    ),
    Column("ParamRef", "ParamRef indicates the param resource which sets the configuration param", _param_ref),
    AGE,
)
