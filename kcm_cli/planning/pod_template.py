"""Makes pods from a pod template."""

from collections.abc import Mapping
from typing import Any

from kcm_cli.api.resource import Resource
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.labels import Selector
from kcm_cli.machinery.meta import Object


def controller_ref(resource: Resource[Any], owner: Object) -> Doc:
    """The owner reference that marks the owner as the controller."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": owner.name,
        "uid": owner.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


class UnselectedTemplate(Exception):
    """The owner's selector does not match its template: each pod would be released, and another one created, for ever.

    API servers refuse such owners today, but old ones may be stored.
    """

    reason = "UnselectedTemplate"

    def __init__(self, why: str = "the selector does not match the template's labels") -> None:
        super().__init__(f"unable to create pods, {why}")


def labels_of(template: Doc) -> Mapping[str, str]:
    """The labels of a template's pods."""
    return nested_map(template, "metadata", "labels")


def check_selected(template: Doc, selector: Selector) -> None:
    """Raises UnselectedTemplate."""
    if not selector.matches(labels_of(template)):
        raise UnselectedTemplate


def pod_from_template(template: Doc, resource: Resource[Any], owner: Object) -> Doc:
    """The pod document of one more replica, with a generateName.

    upstream: pkg/controller/controller_utils.go#GetPodFromTemplate
    """
    metadata: Doc = {
        "generateName": f"{owner.name}-",
        "ownerReferences": [controller_ref(resource, owner)],
    }
    source = nested_map(template, "metadata")
    for field in ("labels", "annotations", "finalizers"):
        if source.get(field):
            metadata[field] = source[field]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec") or {}}
