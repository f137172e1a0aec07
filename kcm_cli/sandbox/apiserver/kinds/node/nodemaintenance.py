"""NodeMaintenance: a node that is to be drained for a while."""

from kcm_cli.sandbox.apiserver.registry.catalog import Facts, Subresource
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import rules

_TEXT = {"type": "string"}
_SPEC = rules.fields(rules.required("nodeName", rules.SUBDOMAIN), rules.one_of("mode", "Cordon", "Drain"))


def _defaults(doc: Tree) -> None:
    doc.setdefault("spec", {}).setdefault("mode", "Drain")


KIND = Kind(
    "node.kcm.dev",
    "nodemaintenances",
    facts=Facts(
        ("node.kcm.dev", "v1"),
        "nodemaintenances",
        "nodemaintenance",
        "NodeMaintenance",
        namespaced=False,
        subresources=(Subresource("status"),),
    ),
    schema={
        "properties": {
            "spec": {"type": "object", "properties": {"nodeName": _TEXT, "mode": _TEXT}},
            "status": {"type": "object", "properties": {"phase": _TEXT}},
        }
    },
    defaults=_defaults,
    strategy=Strategy(new_status={}, check=by_spec(_SPEC)),
    table=layout(NAME, Column("Node", "Its node.", at("spec.nodeName")), Column("Mode", "", at("spec.mode")), AGE),
)
