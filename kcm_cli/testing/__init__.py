"""A Kubernetes control plane for tests: the one place to import from (docs/testing-operators.md).

    from kcm_cli.testing import Sandbox

    with Sandbox() as sandbox:
        sandbox.apply("deploy/")
        sandbox.advance(600)

pytest has the fixtures ``kcm_sandbox``, ``kcm_namespace`` and others for it. ``AsyncSandbox`` is for asynchronous
programs.
"""

from kcm_cli.rest.errors import AlreadyExists, ApiError, NotFound
from kcm_cli.sandbox.apiserver.entry.fault import Fault, Happening
from kcm_cli.sandbox.apiserver.entry.recording import RecordedRequest
from kcm_cli.sandbox.hosted import HostOptions, Injection, Recording, SandboxError, UnhitFault
from kcm_cli.sandbox.manifests import Manifest, ManifestError
from kcm_cli.sandbox.nodes.commands import NotSimulated
from kcm_cli.sandbox.operators import Operator, OperatorError, Program, pointing_to
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.sandbox.streams.inside import Asked, Output
from kcm_cli.testing.sandbox import AsyncSandbox, Sandbox

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Asked",
    "NotFound",
    "NotSimulated",
    "Output",
    "UnhitFault",
    "AsyncSandbox",
    "Fault",
    "Happening",
    "HostOptions",
    "Injection",
    "Manifest",
    "ManifestError",
    "Operator",
    "OperatorError",
    "Program",
    "RecordedRequest",
    "Recording",
    "Sandbox",
    "SandboxError",
    "Snapshot",
    "pointing_to",
]
