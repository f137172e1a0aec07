"""Fields whose feature gates are off in this version: those of pods, and of any kind by their paths.

upstream: pkg/api/pod/util.go#dropDisabledFields
"""

from kcm_cli.sandbox.apiserver import trees
from kcm_cli.sandbox.apiserver.trees import places
from kcm_cli.sandbox.apiserver.types import Tree
from kcm_cli.sandbox.apiserver.validation.windows import containers_of

_PROJECTIONS = ("clusterTrustBundle", "podCertificate")


def drop_gated(spec: Tree, known: Tree | None = None) -> None:
    """Drop the fields of disabled gates, unless the old object has them.

    Off: ContainerStopSignals, ClusterTrustBundleProjection, PodCertificateRequest, GenericWorkload.
    """
    if "schedulingGroup" in spec and (known is None or "schedulingGroup" not in known):
        del spec["schedulingGroup"]
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        for container in spec.get(kind) or ():
            if "lifecycle" in container and "stopSignal" in container["lifecycle"] and not _uses_signals(known):
                del container["lifecycle"]["stopSignal"]
                if not container["lifecycle"]:
                    del container["lifecycle"]
    for volume in spec.get("volumes") or ():
        if "projected" in volume:
            _drop_projections(volume["projected"], known)


def _uses_signals(spec: Tree | None) -> bool:
    return spec is not None and any(
        "stopSignal" in (item.get("lifecycle") or ()) for item, _ in containers_of(spec, "")
    )


def _drop_projections(projected: Tree, known: Tree | None) -> None:
    for source in projected.get("sources") or ():
        for kind in _PROJECTIONS:
            if kind in source and not any(kind in one for one, _ in places(known, "volumes[].projected.sources[]")):
                del source[kind]


def drop_field(new: Tree, old: Tree | None, path: str) -> None:
    """Drop the field at a path, unless the old object has it."""
    above, _, field = path.rpartition(".")
    holder = trees.at(new, above)
    if holder is not None and trees.at(old, path) is None:
        holder.pop(field, None)


def drop_gated_of_template(new: Tree | None, old: Tree | None) -> None:
    """``drop_gated`` in a template."""
    if new is not None and new.get("spec"):
        drop_gated(new["spec"], None if old is None else old.get("spec"))
