"""ControllerRevisions: the template history of DaemonSets and StatefulSets.

A revision's data is a patch that replaces the whole template. Revisions of kube-controller-manager are recognised by
their data, and those made here are the same byte for byte, so that each can take over from the other.

upstream: pkg/controller/history/controller_history.go, pkg/controller/daemon/update.go,
pkg/controller/statefulset/stateful_set_utils.go
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from kcm_cli.api.apps import ControllerRevision
from kcm_cli.api.resource import Resource
from kcm_cli.machinery import go_json
from kcm_cli.machinery.codec import Doc
from kcm_cli.machinery.documents import nested_map
from kcm_cli.machinery.meta import Object
from kcm_cli.machinery.names import LABEL_MAX
from kcm_cli.machinery.same import same
from kcm_cli.planning.pod_template import controller_ref
from kcm_cli.planning.template_form import same_when_defaulted, serialised

HASH_LABEL = "controller.kubernetes.io/hash"
"""The label with the hash of a StatefulSet's revision."""

POD_HASH_LABEL = "controller-revision-hash"
"""The label with the hash of a DaemonSet's revision, and with that (or the name) of the revision of a pod."""


def patch_of(template: Doc) -> Doc:
    """The data of a revision with this template."""
    return {"spec": {"template": {**serialised(template), "$patch": "replace"}}}


def template_of(revision: ControllerRevision) -> Doc | None:
    """The template in a revision; None if its data is not such a patch."""
    template = nested_map(revision.data, "spec").get("template")
    return _without(template, "$patch") if isinstance(template, dict) else None


def in_order(revisions: Iterable[ControllerRevision]) -> list[ControllerRevision]:
    """The revisions, oldest first: by number, then by creation time, then by name."""
    return sorted(revisions, key=lambda r: (r.revision, r.metadata.creation_timestamp or "", r.name))


def next_number(revisions: Sequence[ControllerRevision]) -> int:
    """One more than the highest number; 1 for the first."""
    return max((revision.revision for revision in revisions), default=0) + 1


def with_data(revisions: Iterable[ControllerRevision], data: Doc) -> list[ControllerRevision]:
    """The revisions with this data, in the given order."""
    return [revision for revision in revisions if same(revision.data, data)]


def is_of(revision: ControllerRevision, template: Doc) -> bool:
    """Whether a revision has this template, apart from spelling and later defaults."""
    stored = template_of(revision)
    return stored is not None and same_when_defaulted(stored, template)


def name_of(prefix: str, hash_: str) -> str:
    """The name of a revision: the prefix, cut so that pods can have the name in a label, and the hash."""
    return f"{prefix[: LABEL_MAX - 1 - len(hash_)]}-{hash_}"


def surplus(
    revisions: Sequence[ControllerRevision],
    limit: int,
    in_use: Callable[[ControllerRevision], bool],
    *,
    count_used: bool,
) -> list[ControllerRevision]:
    """The oldest unused revisions beyond the limit; none for a negative limit.

    count_used: whether revisions in use count toward the limit (DaemonSets) or not (StatefulSets).
    """
    unused = [revision for revision in in_order(revisions) if not in_use(revision)]
    over = len(revisions if count_used else unused) - limit
    return unused[:over] if limit >= 0 and over > 0 else []


def encode(
    owner_resource: Resource[Any],
    owner: Object,
    *,
    name: str,
    labels: Mapping[str, str],
    data: Doc,
    revision: int,
) -> bytes:
    """The body of a new revision. It carries the owner's annotations; ``labels`` include the hash."""
    metadata: Doc = {
        "name": name,
        "namespace": owner.namespace,
        "labels": dict(labels),
        "ownerReferences": [controller_ref(owner_resource, owner)],
    }
    if owner.annotations:
        metadata["annotations"] = dict(owner.annotations)
    return go_json.encode(
        {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": metadata,
            "data": data,
            "revision": revision,
        }
    )


def _without(document: Doc, key: str) -> Doc:
    return {name: value for name, value in document.items() if name != key}
