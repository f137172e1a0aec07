"""CertificateSigningRequest.

upstream: pkg/apis/certificates/validation,
pkg/registry/certificates/certificatesigningrequest/strategy.go, pkg/printers/internalversion/printers.go
"""

from collections.abc import Callable
from datetime import datetime

from cryptography import x509

from kcm_cli.machinery import der, names, pem
from kcm_cli.machinery.ages import human_duration
from kcm_cli.machinery.errors import FormatError
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.quoting import quote
from kcm_cli.planning import pkcs10
from kcm_cli.sandbox.apiserver.apply.fieldset import of_paths
from kcm_cli.sandbox.apiserver.apply.resets import Writable
from kcm_cli.sandbox.apiserver.defaulting import fill
from kcm_cli.sandbox.apiserver.registry.core import Kind
from kcm_cli.sandbox.apiserver.selectable import Selectable
from kcm_cli.sandbox.apiserver.strategy.base import Context, Strategy
from kcm_cli.sandbox.apiserver.tables.column import AGE, NAME, Column, at, layout, shown
from kcm_cli.sandbox.apiserver.tables.templates import NONE
from kcm_cli.sandbox.apiserver.trees import keep
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, go_print, metadata, rules

_USAGES = rules.choices("certificates.v1.CertificateSigningRequestSpec", "usages")

_LEGACY = "kubernetes.io/legacy-unknown"
_FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
_SIGNER_MAX = names.SUBDOMAIN_MAX * 2 + names.LABEL_MAX + 2
_DECISIONS = ("Approved", "Denied")
_STATUSES = ("False", "True", "Unknown")
_TRUE_ONLY = ("Approved", "Denied", "Failed")
_MIN_DURATION_S = 600


def _check_status(new: Tree, old: Tree) -> Errors:
    """Check an update of ``status``, which can issue the certificate once."""
    return [*_request(new, old), *_update(new, old, certificate=True)]


def _check_approval(new: Tree, old: Tree) -> Errors:
    """Check an update of ``approval``, which can approve or deny the request once."""
    return [*_request(new, old), *_update(new, old, decisions=True)]


def _any_name(name: str, prefix: bool) -> list[str]:
    return []


def _request(doc: Tree, old: Tree | None) -> Errors:
    spec, status = doc.get("spec") or {}, doc.get("status") or {}
    known_spec, known = (old or {}).get("spec") or {}, (old or {}).get("status") or {}
    yield from metadata.validate_meta(doc["metadata"], False, _any_name)
    if problem := _request_problem(spec.get("request", "")):
        yield errors.invalid("spec.request", spec.get("request") or None, problem)
    yield from _usages(spec.get("usages") or [], known_spec.get("usages") or [])
    signer = spec.get("signerName", "")
    if signer != _LEGACY:
        yield from validate_signer(signer, "spec.signerName")
    elif known_spec.get("signerName") != _LEGACY:
        yield errors.invalid("spec.signerName", signer, "the legacy signerName is not allowed via this API version")
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _MIN_DURATION_S:
        detail = f"may not specify a duration less than {_MIN_DURATION_S} seconds (10 minutes)"
        yield errors.invalid("spec.expirationSeconds", seconds, detail)
    yield from _conditions(status.get("conditions") or [], known.get("conditions") or [])
    certificate, before = status.get("certificate", ""), known.get("certificate", "")
    if old is not None and (certificate == before or _certificate_problem(before)):
        return
    if problem := _certificate_problem(certificate):
        yield errors.invalid("status.certificate", "<certificate data>", problem)


def _request_problem(text: str) -> str:
    try:
        pkcs10.from_pem(decoded_base64(text))
    except FormatError as error:
        return str(error)
    return ""


def _certificate_problem(text: str) -> str:
    data = decoded_base64(text)
    if not data:
        return ""
    count = 0
    for block in pem.blocks(data):
        if block.type != pem.CERTIFICATE:
            return f"only CERTIFICATE PEM blocks are allowed, found {quote(block.type)}"
        if block.headers:
            return "no PEM block headers are permitted"
        count += 1
        try:
            found = [x509.load_der_x509_certificate(one) for one in der.split(block.content)]
        except (ValueError, x509.InvalidVersion):
            return "x509: malformed certificate"
        if not found:
            return "found CERTIFICATE PEM block containing 0 certificates"
    return "" if count else "must contain at least one CERTIFICATE PEM block"


def _usages(usages: list[str], known: list[str]) -> Errors:
    if not usages:
        yield errors.required("spec.usages")
    if all(usage in _USAGES for usage in known):
        yield from _KNOWN(usages, "spec.usages")
    if len(set(known)) == len(known):
        yield from _DISTINCT(usages, "spec.usages")


_KNOWN, _DISTINCT = rules.items(rules.enum(*_USAGES)), rules.items(rules.anything, key="")


def validate_signer(name: str, path: str) -> Errors:
    """Check the name of a signer."""
    domain, slash, rest = name.partition("/")
    if not name:
        yield errors.required(path)
        return
    if not slash or "/" in rest:
        yield errors.invalid(path, name, _FORM)
        return
    if len(domain) > names.SUBDOMAIN_MAX:
        yield errors.too_long(path, names.SUBDOMAIN_MAX)
    yield from _first_wrong(domain, names.dns1123_label, path)
    if "." not in domain:
        yield errors.invalid(path, domain, "should be a domain with at least two segments separated by dots")
    yield from _first_wrong(rest, names.dns1123_subdomain, path)
    if len(name) > _SIGNER_MAX:
        yield errors.too_long(path, _SIGNER_MAX)


def _first_wrong(text: str, rule: Callable[[str], list[str]], path: str) -> Errors:
    """The errors of the first invalid part between dots."""
    for label in text.split("."):
        if messages := rule(label):
            details = [f"validating label {quote(label)}: {message}" for message in messages]
            return errors.invalid_each(path, text, details)
    return ()


def _conditions(conditions: list[Tree], known: list[Tree]) -> Errors:
    path = "status.conditions"
    before = [item.get("type", "") for item in known]
    both = set(_DECISIONS) <= set(before)
    repeated = len(set(before)) < len(before)
    seen: set[str] = set()
    for index, condition in enumerate(conditions):
        kind, status, place = condition.get("type", ""), condition.get("status", ""), f"{path}[{index}]"
        if not kind and "" not in before:
            yield errors.required(f"{place}.type")
        yield from errors.one_of(f"{place}.status", status, ("True",) if kind in _TRUE_ONLY else _STATUSES)
        if not both and kind in _DECISIONS and seen & (set(_DECISIONS) - {kind}):
            yield errors.invalid(path, kind, "Approved and Denied conditions are mutually exclusive")
        if kind in seen and not repeated:
            yield errors.duplicate(f"{place}.type", kind)
        seen.add(kind)


def _of_type(doc: Tree, kind: str) -> list[Tree]:
    conditions = (doc.get("status") or {}).get("conditions") or ()
    return [item for item in conditions if item.get("type") == kind]


def _update(new: Tree, old: Tree, *, decisions: bool = False, certificate: bool = False) -> Errors:
    """Check an update. decisions, certificate: whether it may change these."""
    path = "status.conditions"
    for kind in _TRUE_ONLY:
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            yield errors.forbidden(path, f"updates may not remove a condition of type {quote(kind)}")
    for kind in () if decisions else _DECISIONS:
        yield from _decision(_of_type(new, kind), _of_type(old, kind), kind, path)
    after, before = ((doc.get("status") or {}).get("certificate", "") for doc in (new, old))
    if after != before and not certificate:
        yield errors.forbidden("status.certificate", "updates may not set certificate content")
    elif after != before and before:
        yield errors.forbidden("status.certificate", "updates may not modify existing certificate content")
    yield from metadata.validate_meta_update(new["metadata"], old["metadata"])


def _decision(after: list[Tree], before: list[Tree], kind: str, path: str) -> Errors:
    if len(after) > len(before):
        return [errors.forbidden(path, f"updates may not add a condition of type {quote(kind)}")]
    if len(after) < len(before) or after == before:
        return []
    difference = go_print.diff("[]certificates.CertificateSigningRequestCondition", before, after)
    return [errors.forbidden(path, f"updates may not modify a condition of type {quote(kind)}\n{difference}")]


def _stamp_request(new: Tree, old: Tree | None, context: Context) -> None:
    """Set the user of the request in the spec."""
    if old is not None:
        return
    spec = new.setdefault("spec", {})
    for field in ("username", "uid", "groups", "extra"):
        spec.pop(field, None)
    spec.update(context.user.info())


def _request_status(new: Tree, old: Tree) -> None:
    status, known = new.setdefault("status", {}), old.get("status") or {}
    for kind in _DECISIONS:
        _keep_decision(status, known, kind)


def _keep_decision(status: Tree, known: Tree, kind: str) -> None:
    """Keep the old conditions of a kind, if the new status has as many."""
    before = [item for item in known.get("conditions") or () if item.get("type") == kind]
    conditions = list(status.get("conditions") or ())
    places = [index for index, item in enumerate(conditions) if item.get("type") == kind]
    if before and len(before) == len(places):
        for place, item in zip(places, before, strict=True):
            conditions[place] = item
        status["conditions"] = conditions


def _approval(new: Tree, old: Tree) -> None:
    keep(new, old, "spec")
    conditions = (new.get("status") or {}).get("conditions")
    status = {key: value for key, value in (old.get("status") or {}).items() if key != "conditions"}
    new["status"] = status if conditions is None else {**status, "conditions": conditions}


def _stamp_conditions(new: Tree, old: Tree | None, context: Context) -> None:
    known = ((old or {}).get("status") or {}).get("conditions") or ()
    for condition in (new.get("status") or {}).get("conditions") or ():
        transition = _transition(condition, known) or context.now
        fill.empty(condition, lastUpdateTime=context.now, lastTransitionTime=transition)


def _transition(condition: Tree, known: object) -> str:
    assert isinstance(known, list | tuple)
    for item in known:
        same = all(item.get(field) == condition.get(field) for field in ("type", "status"))
        if same and item.get("lastTransitionTime"):
            return str(item["lastTransitionTime"])
    return ""


def _state(doc: Tree, now: datetime) -> str:
    status = doc.get("status") or {}
    types = {one["type"] for one in status.get("conditions") or ()}
    state = "Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"
    return state + (",Failed" if "Failed" in types else "") + (",Issued" if status.get("certificate") else "")


# The columns of these tables have the descriptions of earlier versions of their kinds.
_SIGNER = (
    "Requested signer for the request. It is a qualified name in the form: `scope-hostname.io/name`. "
    "If empty, it will be defaulted:\n"
    " 1. If it's a kubelet client certificate, it is assigned\n"
    '    "kubernetes.io/kube-apiserver-client-kubelet".\n'
    " 2. If it's a kubelet serving certificate, it is assigned\n"
    '    "kubernetes.io/kubelet-serving".\n'
    ' 3. Otherwise, it is assigned "kubernetes.io/legacy-unknown".\n'
    "Distribution of trust for signers happens out of band. You can select on this field using `spec.signerName`."
)


KIND = Kind(
    "certificates.k8s.io",
    "certificatesigningrequests",
    strategy=Strategy(
        names=None,
        new_status={},
        on_update=lambda new, old: keep(new, old, "spec"),
        on_status=_request_status,
        stamp=_stamp_request,
        stamp_status=_stamp_conditions,
        check=_request,
        check_change=_update,
        check_status=_check_status,
    ),
    subresources={
        "approval": Strategy(
            names=None,
            keeps_status=False,
            on_update=_approval,
            stamp=_stamp_conditions,
            check_change=_check_approval,
        )
    },
    table=layout(
        NAME,
        AGE,
        Column("SignerName", _SIGNER, at("spec.signerName", NONE)),
        Column("Requestor", "Base64-encoded PKCS#10 CSR data", at("spec.username")),
        Column(
            "RequestedDuration",
            "CertificateSigningRequestSpec.expirationSeconds",
            shown("spec.expirationSeconds", NONE, human_duration),
        ),
        Column("Condition", "Conditions applied to the request, such as approval or denial.", _state),
    ),
    writable={
        "": Writable(of_paths(("spec",), ("status",))),
        "status": Writable(of_paths(("spec",), ("status", "conditions"))),
        "approval": Writable(of_paths(("spec",), ("status", "certificate"))),
    },
    selectable=Selectable({"spec.signerName": "spec.signerName"}, namespace=False),
)
