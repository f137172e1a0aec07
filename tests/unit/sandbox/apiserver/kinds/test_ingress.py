"""Ingresses: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Causes, Kind, rows

INGRESSES = Kind(
    "/apis/networking.k8s.io/v1/namespaces/default/ingresses",
    {
        "spec": {
            "rules": [
                {
                    "http": {
                        "paths": [
                            {
                                "path": "/",
                                "pathType": "Prefix",
                                "backend": {"service": {"name": "s", "port": {"number": 80}}},
                            }
                        ]
                    }
                }
            ]
        }
    },
)
DEFAULTS: dict[str, Any] = {
    "spec.rules[0].http.paths[0].pathType": "Prefix",
}
REFUSED = [
    ("spec", {}, "Invalid value: null: either `defaultBackend` or `rules` must be specified"),
    ("spec.rules[0].host", "1.2.3.4", 'Invalid value: "1.2.3.4": must be a DNS name, not an IP address'),
    ("spec.rules[0].host", "a_b", 'Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower case a…'),
    ("spec.rules[0].http.paths[0].path", "x", 'Invalid value: "x": must be an absolute path'),
    ("spec.rules[0].http.paths[0].path", "/a//b", "Invalid value: \"/a//b\": must not contain '//'"),
    ("spec.rules[0].http.paths[0].pathType", "", 'Unsupported value: "": supported values: "Exact", "ImplementationS…'),
    ("spec.rules[0].http.paths[0].pathType", "Regex", 'Unsupported value: "Regex": supported values: "Exact", "Imple…'),
    ("spec.rules[0].http.paths[0].backend", {}, 'Invalid value: "": resource or service backend is required'),
    (
        "spec.rules[0].http.paths[0].backend.service.name",
        "A",
        'Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \'-…',
    ),
    (
        "spec.rules[0].http.paths[0].backend.service.port",
        {},
        "spec.rules[0].http.paths[0].backend: Required value: port name or number is required",
    ),
    (
        "spec.rules[0].http.paths[0].backend.service.port",
        {"number": 80, "name": "p"},
        'spec.rules[0].http.paths[0].backend: Invalid value: "": cannot set both port name & port number',
    ),
    ("spec.rules[0].http.paths", [], "Required value"),
    ("spec.tls", [{"hosts": ["*.*"]}], 'spec.tls[0].hosts[0]: Invalid value: "*.*": a wildcard DNS-1123 subdomain…'),
    ("spec.ingressClassName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of lower cas…'),
    (
        "spec.defaultBackend",
        {"resource": {"kind": "", "name": "x"}},
        "spec.defaultBackend.resource.kind: Required value",
    ),
]


async def test_defaults(api: Api) -> None:
    assert await INGRESSES.created(api, *DEFAULTS) == DEFAULTS


@rows(REFUSED)
async def test_refused_values(api: Api, field: str, value: Any, causes: Causes) -> None:
    assert await INGRESSES.refusal(api, field, value, causes) == causes
