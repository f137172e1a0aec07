"""How the quota controller names kinds, and which features it counts with."""

from dataclasses import dataclass

GroupResource = tuple[str, str]
"""A kind by its group and plural."""


@dataclass(frozen=True, slots=True)
class Features:
    """Gates that decide what counts: DRAExtendedResource, PodLevelResources, InPlacePodVerticalScaling (what a node
    has still given to a pod), RecoverVolumeExpansionFailure (what a claim has still been given),
    VolumeAttributesClass.
    """

    extended_resources: bool = True
    pod_level_resources: bool = True
    given_to_pods: bool = True
    given_to_claims: bool = True
    attributes_class: bool = True
