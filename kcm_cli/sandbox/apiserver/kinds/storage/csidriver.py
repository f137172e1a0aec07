"""CSIDriver.

upstream: pkg/apis/storage/v1/defaults.go, pkg/apis/storage/validation,
pkg/registry/storage/csidriver/strategy.go, pkg/printers/internalversion/printers.go
"""

from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.strategy import parts
from kcm_cli.sandbox.apiserver.strategy.base import Strategy, by_spec
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, UNSET, Column, flag, layout, of_field, shown
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules
from kcm_cli.sandbox.apiserver.validation.volume_projections import TOKEN_SECONDS


def _check_change(new: Tree, old: Tree) -> Errors:
    spec, known = new["spec"], old["spec"]
    yield from errors.fixed("spec.attachRequired", spec.get("attachRequired"), known.get("attachRequired"))
    modes, before = spec.get("volumeLifecycleModes"), known.get("volumeLifecycleModes")
    yield from errors.fixed("spec.volumeLifecycleModes", modes, before)


def _tokens(requests: list[Tree], path: str) -> Errors:
    unique = rules.Unique()
    for index, request in enumerate(requests):
        repeated = unique(request.get("audience", ""), f"{path}[{index}].audience")
        yield from repeated or _TOKEN(request, f"{path}[{index}]")


def _modes(modes: list[str], path: str) -> Errors:
    for mode in modes:
        yield from _MODE(mode, path)


def _in_secrets(spec: Tree, path: str) -> Errors:
    if spec.get("serviceAccountTokenInSecrets") is not None and not spec.get("tokenRequests"):
        detail = "serviceAccountTokenInSecrets is set but no tokenRequests are specified"
        yield errors.invalid(f"{path}.serviceAccountTokenInSecrets", spec["serviceAccountTokenInSecrets"], detail)


_MODE = rules.enum("Persistent", "Ephemeral")
_TOKEN = rules.fields(rules.optional("expirationSeconds", TOKEN_SECONDS))
_SPEC = rules.fields(
    rules.present("attachRequired"),
    rules.present("podInfoOnMount"),
    rules.present("storageCapacity"),
    rules.maybe_one_of("fsGroupPolicy", "File", "None", "ReadWriteOnceWithFSType"),
    rules.optional("tokenRequests", _tokens),
    rules.optional("volumeLifecycleModes", _modes),
    rules.present("seLinuxMount"),
    rules.optional(
        "nodeAllocatableUpdatePeriodSeconds", rules.at_least(10, "must be greater than or equal to 10 seconds")
    ),
    _in_secrets,
)


def _defaults(doc: Tree) -> None:
    spec = doc.setdefault("spec", {})
    fill.absent(spec, attachRequired=True, podInfoOnMount=False, storageCapacity=False)
    fill.absent(spec, fsGroupPolicy="ReadWriteOnceWithFSType", requiresRepublish=False, seLinuxMount=False)
    fill.empty(spec, volumeLifecycleModes=["Persistent"])


_TOKENS = (
    "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, "
    "set to true to prevent possible logging of tokens in volume attributes"
)


def of_driver(new: Tree, old: Tree | None) -> list[str]:
    """Warnings about a CSIDriver. On updates: only if its token requests change."""
    requests = new["spec"].get("tokenRequests")
    changed = old is None or requests != old["spec"].get("tokenRequests")
    unset = new["spec"].get("serviceAccountTokenInSecrets") is None
    return [_TOKENS] if requests and changed and unset else []


def _audiences(requests: list[Tree]) -> str:
    return ",".join(one.get("audience", "") for one in requests)


KIND = Kind(
    "storage.k8s.io",
    "csidrivers",
    defaults=_defaults,
    strategy=Strategy(
        gated=("spec.preventPodSchedulingIfMissing",),  # VolumeLimitScaling
        on_update=parts.bump_if_spec_changed,
        needs_version_on_update=True,
        returns_object_on_delete=True,
        check=by_spec(_SPEC),
        check_change=_check_change,
        warn=of_driver,
    ),
    table=layout(
        NAME,
        flag("AttachRequired", *of_field("CSIDriver", "spec.attachRequired", False)),
        flag("PodInfoOnMount", *of_field("CSIDriver", "spec.podInfoOnMount", False)),
        flag("StorageCapacity", *of_field("CSIDriver", "spec.storageCapacity", False)),
        Column("TokenRequests", "CSIDriverSpec.tokenRequests", shown("spec.tokenRequests", UNSET, _audiences)),
        flag("RequiresRepublish", *of_field("CSIDriver", "spec.requiresRepublish", False)),
        Column("Modes", "CSIDriverSpec.volumeLifecycleModes", shown("spec.volumeLifecycleModes", NONE, ",".join)),
        AGE,
    ),
)
