"""Ingresses: defaults, and refused values with their causes, as a v1.36 server answers."""

from typing import Any

from tests.kit.api import Api
from tests.kit.kinds import Kind, Row

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
REFUSED: list[Row] = [
    ("spec", {}, "Invalid value: null: either `defaultBackend` or `rules` must be specified"),
    ("spec.rules[0].host", "1.2.3.4", 'Invalid value: "1.2.3.4": must be a DNS name, not an IP address'),
    ("spec.rules[0].host", "a_b", 'Invalid value: "a_b": a lowercase RFC 1123 subdomain must consist of lower …'),
    ("spec.rules[0].http.paths[0].path", "x", 'Invalid value: "x": must be an absolute path'),
    ("spec.rules[0].http.paths[0].path", "/a//b", "Invalid value: \"/a//b\": must not contain '//'"),
    ("spec.rules[0].http.paths[0].pathType", "", 'Unsupported value: "": supported values: "Exact", "Implementat…'),
    (
        "spec.rules[0].http.paths[0].pathType",
        "Regex",
        'Unsupported value: "Regex": supported values: "Exact", "ImplementationSpecific", "Prefix"',
    ),
    ("spec.rules[0].http.paths[0].backend", {}, 'Invalid value: "": resource or service backend is required'),
    (
        "spec.rules[0].http.paths[0].backend.service.name",
        "A",
        'Invalid value: "A": a lowercase RFC 1123 label must consist of lower case alphanumeric characters …',
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
    ("spec.tls", [{"hosts": ["*.*"]}], '[0].hosts[0]: Invalid value: "*.*": a wildcard DNS-1123 subdomain must …'),
    ("spec.ingressClassName", "A B", 'Invalid value: "A B": a lowercase RFC 1123 subdomain must consist of …'),
    ("spec.defaultBackend", {"resource": {"kind": "", "name": "x"}}, ".resource.kind: Required value"),
]


async def test_table(api: Api) -> None:
    await INGRESSES.check(api, DEFAULTS, REFUSED, [])
