"""Services, their endpoints and their addresses."""

from tests.kit.workload import deployment
from tests.simulation.stories.kit import SERVICES, Story, create, create_doc, delete, kind, patch, wide
from tests.simulation.stories.workloads import DEPLOYMENTS

ENDPOINTS = kind("v1/endpoints")
RANGES = wide("networking.k8s.io/v1/servicecidrs")
OWN = {"ports": [{"port": 80}]}
PORTS = [{"port": 80, "protocol": "TCP"}]

STORIES = {
    "service": Story(
        about=("endpoints", "endpointslice"),
        nodes=1,
        steps=(
            create_doc(DEPLOYMENTS, deployment("web", 2)),
            create(SERVICES, "web", spec={"selector": {"app": "web"}, **OWN}),
            patch(SERVICES, "web", {"metadata": {"labels": {"tier": "front"}}}),
            patch(SERVICES, "web", {"spec": {"ports": [{"port": 81, "targetPort": 8080}]}}),
            patch(DEPLOYMENTS, "web", {"spec": {"replicas": 1}}),
            delete(SERVICES, "web"),
        ),
    ),
    "mirrored-endpoints": Story(
        about=("endpointslice-mirroring",),
        steps=(
            create(SERVICES, "db", spec=OWN),
            create(ENDPOINTS, "db", subsets=[{"addresses": [{"ip": "10.9.0.1"}], "ports": PORTS}]),
            patch(
                ENDPOINTS,
                "db",
                {"subsets": [{"addresses": [{"ip": "10.9.0.2"}, {"ip": "10.9.0.3"}], "ports": PORTS}]},
            ),
            patch(ENDPOINTS, "db", {"subsets": []}),
            patch(ENDPOINTS, "db", {"subsets": [{"addresses": [{"ip": "10.9.0.2"}], "ports": PORTS}]}),
            delete(ENDPOINTS, "db"),
        ),
    ),
    "service-ranges": Story(
        about=("service-cidr",),
        steps=(
            create(RANGES, "more", spec={"cidrs": ["192.168.0.0/24"]}),
            create(SERVICES, "web", spec={"clusterIP": "192.168.0.7", **OWN}),
            delete(RANGES, "more"),
            delete(SERVICES, "web"),
        ),
    ),
}
