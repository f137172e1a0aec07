"""Changes by users, per kind, that controllers react to.

A controller that writes is in ``about`` of a story; those that are in none are named here, with the reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.simulation.stories import cluster, devices, identity, nodes, services, storage, workloads
from tests.simulation.stories.kit import Story

STORIES: Mapping[str, Story] = {
    **nodes.STORIES,
    **workloads.STORIES,
    **services.STORIES,
    **storage.STORIES,
    **identity.STORIES,
    **devices.STORIES,
    **cluster.STORIES,
}
WITHOUT_STORY = {"selinux-warning-controller": "writes nothing but Events"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """What differs from the run without, and has to. point, wrong: patterns of the point and of the finding."""

    point: str
    wrong: str
    why: str


EXPLAINED = (
    Explanation(
        "[^/]*/(stale|older)@.*",
        r".*\d+ times .* by node-controller.*",
        "for a minute no heartbeat is seen, so nodes count as silent, with upstream as well; it is taken back",
    ),
    Explanation(
        "[^/]*/(unsent|crash|stale|older|terminating|refused|conflict)@.*",
        r"endpoint.*: metadata\.annotations.* .*last-change-trigger-time.*",
        "what triggered the last change is kept in the memory of the manager, as in upstream: the next one starts with "
        "the creation of the Service, and the first attempt to write it, which may fail, includes it",
    ),
    Explanation(
        "service/(stale|missed|lag)@.*",
        r"endpointslices.*: metadata\.annotations is not set, and was .*last-change-trigger-time.*",
        "a pod that is gone before it was seen to end triggered nothing, with upstream as well: what is written then "
        "has no such annotation",
    ),
    Explanation(
        r"(broken-device|claims-of-devices)/.*@resource-claim-controller:update:resourceclaims.resource.k8s.io(/status)?:.*",
        r"resourceclaims\.resource\.k8s\.io .*: metadata\.finalizers is .*delete-protection.*, and was not set",
        "the finalizer of a claim that was freed before the manager died stays until the claim is deleted or allocated "
        "again, with upstream as well: one without an allocation may be one that the scheduler is about to allocate",
    ),
    Explanation(
        r"claims-of-devices/(stale|older)@resource-claim-controller:create:resourceclaims.resource.k8s.io:waits-e-\*#1",
        r"resourceclaims\.resource\.k8s\.io waits-e-\*: there are 2, not 1",
        "a claim that is made from a template has a generated name, and one that a predecessor made is found in the "
        "cache, with upstream as well: behind a stale one a second claim is made. The pod names one of them, and both "
        "go with it",
    ),
    Explanation(
        r"(failing-job|cronjob)/stale@job-controller:create:pods:.*",
        r"pods (bad|held|parts-\d|nightly-\d+)-\*: there are \d, not \d|"
        r"jobs\.batch (bad|held|nightly-\d+): status\.(failed|succeeded) .*",
        "a pod has a generated name, and one that a predecessor made is found in the cache, with upstream as well: "
        "behind a stale one it is made again, and both have ended by the time both are seen",
    ),
    Explanation(
        r"failing-job/older@job-controller:create:pods:held-\*#1",
        r"jobs\.batch held: status\.conditions\.2\.\w+ is .*",
        "the condition Suspended is taken back by a sync that manages pods, with upstream as well: here the first one "
        "that sees the Job resumed sees it complete, too",
    ),
    Explanation(
        "referenced-token/unsent@tokens-controller:update:serviceaccounts:robot#1",
        r"serviceaccounts robot: secrets is \[\{'name': 't'\}\], and was not set",
        "the reference to a deleted token is taken away on its deletion only, with upstream as well: at a start nobody "
        "can tell it from one to a Secret that is still to come",
    ),
    Explanation(
        r"device-pools/missed@ADDED:resourceslices\..*:s#1",
        r"resourcepoolstatusrequests.* r: status\.(conditions|pools|poolCount).*",
        "a request is answered once, from the caches, with upstream as well: the answer is of what they show by then",
    ),
    Explanation(
        "referenced-token/missed@ADDED:serviceaccounts:robot#1",
        r"serviceaccounts robot: secrets is \[\{'name': 't'\}\], and was not set",
        "the reference to a deleted token is taken away on its deletion only, if the account is in the cache by then, "
        "with upstream as well",
    ),
    Explanation(
        r"binding/refused@persistent-volume-binder:update:persistentvolumes:v#1",
        r"persistentvolume(claim)?s (c|waits|v): .*",
        "two claims ask for the volume: while one is refused it, the other one gets it",
    ),
    Explanation(
        "(provisioning/(unsent|crash|stale|older)|attaching/older)@attachdetach-controller:.*",
        r"volumeattachments\.storage\.k8s\.io csi-\* was never deleted, or should not be there",
        "what its predecessor attached a manager learns at its start, with upstream as well, and from the volume: one "
        "that is gone by then, or that was attached behind a stale cache, keeps its VolumeAttachment; the volume "
        "waits for that elsewhere, by a finalizer of external-attacher, which the sandbox does not have",
    ),
)
"""What ``make perturb`` finds and leaves, with the reason."""
