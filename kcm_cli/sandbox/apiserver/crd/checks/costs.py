"""x"""

from dataclasses import dataclass, field

from kcm_cli.machinery import cel
from kcm_cli.sandbox.apiserver.crd.checks.spec import go_rule, shown_go
from kcm_cli.sandbox.apiserver.types import FieldError, Tree


@dataclass(slots=True)
class Totals:
    total: int = 0
    most: list[tuple[str, int]] = field(default_factory=list)


class Scope:
    def __init__(self, schema: Tree, *, totals: Totals, root: bool = False) -> None:
        self.totals = totals
        self.schema = schema

    def property(self, name: str, schema: Tree) -> "Scope":
        return Scope(schema, totals=self.totals)

    def items(self, schema: Tree) -> "Scope":
        return Scope(schema, totals=self.totals)

    def values(self, schema: Tree) -> "Scope":
        return Scope(schema, totals=self.totals)


def check_rules(rules: list[Tree], scope: Scope, path: str, loose: str, *, costs: bool) -> list[FieldError]:
    found = []
    for i, rule in enumerate(rules):
        try:
            cel.Program(rule["rule"])
        except cel.CelSyntaxError as error:
            found.append(
                FieldError(
                    "FieldValueInvalid",
                    f"{path}[{i}].rule",
                    f"Invalid value: {shown_go(go_rule(rule))}: compilation failed: {error}",
                )
            )
    return found


def budget_errors(totals: Totals, path: str) -> list[FieldError]:
    return []
