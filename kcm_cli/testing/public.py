"""What ``kcm_cli.testing`` offers."""

from kcm_cli.rest.errors import AlreadyExists, ApiError, Cause, NotFound
from kcm_cli.sandbox.apiserver.entry.fault import Fault, Happening
from kcm_cli.sandbox.apiserver.entry.recording import RecordedRequest
from kcm_cli.sandbox.kubelet_api.server import Asked, Output
from kcm_cli.sandbox.manifests import Manifest, ManifestError
from kcm_cli.sandbox.nodes.commands import NotSimulated
from kcm_cli.sandbox.nodes.rules import Rule
from kcm_cli.sandbox.snapshots import Snapshot
from kcm_cli.sandbox.streams.remote import Console
from kcm_cli.testing.asynchronous import AsyncSandbox
from kcm_cli.testing.kind import KindCluster
from kcm_cli.testing.operators import Operator, OperatorError, Program
from kcm_cli.testing.perturb.trial import OperatorTrial, Perturbed
from kcm_cli.testing.pointing import pointing_to
from kcm_cli.testing.sandbox import HostOptions, Injection, Recording, Sandbox, SandboxError, Starter, UnhitFault
from kcm_cli.testing.warp import Stalled

__all__ = [
    "AlreadyExists",
    "ApiError",
    "Asked",
    "NotFound",
    "NotSimulated",
    "Output",
    "UnhitFault",
    "AsyncSandbox",
    "Cause",
    "Console",
    "Fault",
    "Happening",
    "HostOptions",
    "Injection",
    "KindCluster",
    "Manifest",
    "ManifestError",
    "Operator",
    "OperatorError",
    "OperatorTrial",
    "Perturbed",
    "Program",
    "RecordedRequest",
    "Recording",
    "Rule",
    "Sandbox",
    "SandboxError",
    "Snapshot",
    "Stalled",
    "Starter",
    "pointing_to",
]
