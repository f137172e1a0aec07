"""What the kinds of rbac share."""

from datetime import datetime

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.kinds.rbac.rules import same_role
from kcm_cli.sandbox.apiserver.strategy.base import Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, Layout, created, layout, name_of, wide
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation import metadata

_RBAC = "rbac.authorization.k8s.io"


def role_binding(doc: Tree) -> None:
    fill.empty(fill.made(doc, "roleRef"), apiGroup=_RBAC)
    for subject in doc.get("subjects") or ():
        if subject.get("kind") in ("User", "Group"):
            fill.empty(subject, apiGroup=_RBAC)


BINDING = Strategy(
    creates_on_update=True,
    names=metadata.path_segment,
    check_change=same_role,
    update_steps=("name", "rules", "metadata", "change"),
)


def _binding_cells(doc: Tree, now: datetime) -> list[object]:
    role = doc.get("roleRef") or {}
    subjects: dict[str, list[str]] = {"User": [], "Group": [], "ServiceAccount": []}
    for one in doc.get("subjects") or ():
        name = f"{one.get('namespace') or ''}/{one['name']}" if one["kind"] == "ServiceAccount" else one["name"]
        subjects.setdefault(one["kind"], []).append(name)
    shown = [", ".join(subjects[kind]) for kind in ("User", "Group", "ServiceAccount")]
    return [name_of(doc), f"{role.get('kind', '')}/{role.get('name', '')}", created(doc, now), *shown]


def binding_table(word: str, scope: str) -> Layout:
    role = f"RoleRef can {scope}. If the RoleRef cannot be resolved, the Authorizer must return an error."
    return layout(
        NAME,
        Column("Role", role),
        AGE,
        wide("Users", f"Users in the {word}"),
        wide("Groups", f"Groups in the {word}"),
        wide("ServiceAccounts", f"ServiceAccounts in the {word}"),
        row=_binding_cells,
    )
