"""Pods.

Source: pkg/apis/core/validation/validation.go#ValidatePodCreate, #ValidatePodUpdate.
"""

from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import metadata
from kcm_cli.sandbox.apiserver.validation.pod_spec import validate_pod_spec


def validate_pod(doc: Tree) -> list[FieldError]:
    found = metadata.validate_meta(doc["metadata"], True, metadata.subdomain)
    return found + validate_pod_spec(doc["spec"], "spec")


def validate_pod_update(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"])


def validate_pod_status(new: Tree, old: Tree) -> list[FieldError]:
    return metadata.validate_meta_update(new["metadata"], old["metadata"])
