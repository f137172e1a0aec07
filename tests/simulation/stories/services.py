"""Services, their endpoints and their addresses."""

from tests.simulation.stories.kit import SERVICES, Story, created, gone, kind, made, patched, wide
from tests.simulation.stories.workloads import DEPLOYMENTS
from tests.simulation.workload import deployment

ENDPOINTS = kind("v1/endpoints")
RANGES = wide("networking.k8s.io/v1/servicecidrs")
OWN = {"ports": [{"port": 80}]}
PORTS = [{"port": 80, "protocol": "TCP"}]

STORIES = {
    "service": Story(
        about=("endpoints", "endpointslice"),
        nodes=1,
        steps=(
            created(DEPLOYMENTS, deployment("web", 2)),
            made(SERVICES, "web", spec={"selector": {"app": "web"}, **OWN}),
            patched(SERVICES, "web", {"metadata": {"labels": {"tier": "front"}}}),
            patched(SERVICES, "web", {"spec": {"ports": [{"port": 81, "targetPort": 8080}]}}),
            patched(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}),
            gone(SERVICES, "web"),
        ),
    ),
    "mirrored-endpoints": Story(
        about=("endpointslice-mirroring",),
        steps=(
            made(SERVICES, "db", spec=OWN),
            made(ENDPOINTS, "db", subsets=[{"addresses": [{"ip": "10.9.0.1"}], "ports": PORTS}]),
            patched(
                ENDPOINTS,
                "db",
                {"subsets": [{"addresses": [{"ip": "10.9.0.2"}, {"ip": "10.9.0.3"}], "ports": PORTS}]},
            ),
            patched(ENDPOINTS, "db", {"subsets": []}),
            patched(ENDPOINTS, "db", {"subsets": [{"addresses": [{"ip": "10.9.0.2"}], "ports": PORTS}]}),
            gone(ENDPOINTS, "db"),
        ),
    ),
    "service-ranges": Story(
        about=("service-cidr",),
        steps=(
            made(RANGES, "more", spec={"cidrs": ["192.168.0.0/24"]}),
            made(SERVICES, "web", spec={"clusterIP": "192.168.0.7", **OWN}),
            gone(RANGES, "more"),
            gone(SERVICES, "web"),
        ),
    ),
}
