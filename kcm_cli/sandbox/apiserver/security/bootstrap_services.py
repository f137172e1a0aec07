"""The APIServices of the groups that the server itself has: their place among all groups.

upstream: pkg/controlplane/apiserver/aggregator.go#DefaultGenericAPIServicePriorities,
cmd/kube-apiserver/app/aggregator.go
"""

from kcm_cli.machinery.codec import Doc

_PRIORITIES: dict[tuple[str, str], tuple[int, int]] = {
    ("", "v1"): (18000, 1),
    ("admissionregistration.k8s.io", "v1"): (16700, 15),
    ("apiextensions.k8s.io", "v1"): (16700, 15),
    ("apps", "v1"): (17800, 15),
    ("authentication.k8s.io", "v1"): (17700, 15),
    ("authorization.k8s.io", "v1"): (17600, 15),
    ("autoscaling", "v1"): (17500, 15),
    ("autoscaling", "v2"): (17500, 30),
    ("batch", "v1"): (17400, 15),
    ("certificates.k8s.io", "v1"): (17300, 15),
    ("coordination.k8s.io", "v1"): (16500, 15),
    ("discovery.k8s.io", "v1"): (16200, 15),
    ("events.k8s.io", "v1"): (17750, 15),
    ("flowcontrol.apiserver.k8s.io", "v1"): (16100, 21),
    ("networking.k8s.io", "v1"): (17200, 15),
    ("node.k8s.io", "v1"): (16300, 15),
    ("policy", "v1"): (17100, 15),
    ("rbac.authorization.k8s.io", "v1"): (17000, 15),
    ("resource.k8s.io", "v1"): (16200, 21),
    ("scheduling.k8s.io", "v1"): (16600, 15),
    ("storage.k8s.io", "v1"): (16800, 15),
}
"""What goes before what: of the group, and of the version in it."""


def api_service(group: str, version: str, priorities: tuple[int, int], managed: str) -> Doc:
    """An APIService that this server answers. ``managed``: how long the server looks after it."""
    where: Doc = {"group": group, "version": version} if group else {"version": version}
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {
            "name": f"{version}.{group}",
            "labels": {"kube-aggregator.kubernetes.io/automanaged": managed},
        },
        "spec": {**where, "groupPriorityMinimum": priorities[0], "versionPriority": priorities[1]},
    }


def api_service_objects() -> list[Doc]:
    """One for each built-in group and version. They are made at a start, and then left to their owner."""
    return [api_service(*key, priorities, "onstart") for key, priorities in _PRIORITIES.items()]
