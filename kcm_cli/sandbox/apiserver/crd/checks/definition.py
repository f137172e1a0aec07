"""x"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree


def validate(doc: Tree) -> list[FieldError]:
    return []


def validate_update(new: Tree, old: Tree) -> list[FieldError]:
    return []


def validate_status(new: Tree, old: Tree) -> list[FieldError]:
    return []
