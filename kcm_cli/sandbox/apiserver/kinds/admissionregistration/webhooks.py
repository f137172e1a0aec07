"""Configurations of validating and mutating webhooks.

Source: pkg/apis/admissionregistration/validation/validation.go, apiserver pkg/util/webhook/validation.go.
"""

from collections.abc import Callable
from functools import cache
from urllib.parse import urlsplit

import msgspec

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, rules

_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = rules.choices("admissionregistration.v1.ValidatingWebhook", "sideEffects")


def check(doc: Tree, old: Tree | None) -> Errors:
    """A new configuration, of either kind, or a changed one."""
    hooks, known = doc.get("webhooks") or [], (old or {}).get("webhooks") or []
    same = len(hooks) == len(known) and all(
        hook.get("matchConditions") == before.get("matchConditions") for hook, before in zip(hooks, known, strict=True)
    )
    leniency = _Leniency(
        conditions=old is not None and same,
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in known),
        reviews=any(not _recognized(hook) for hook in known),
        names=len({hook.get("name", "") for hook in known}) < len(known),
        selectors=any(any(labels.validate_selector(hook.get(field), "")) for hook in known for field in _SELECTORS),
    )
    unique = rules.Unique()
    for index, hook in enumerate(hooks):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        yield from _webhook(leniency)(hook, path)
        if name and not leniency.names:
            yield from unique(name, f"{path}.name")


_REVIEWS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"
_SELECTORS = ("namespaceSelector", "objectSelector")


class _Leniency(msgspec.Struct, frozen=True):
    """What an older object has already and may keep."""

    conditions: bool = False
    side_effects: bool = False
    reviews: bool = False
    names: bool = False
    selectors: bool = False


def _qualified(name: str, path: str) -> Errors:
    if messages := names.dns1123_subdomain(name):
        yield errors.invalid(path, name, ",".join(messages))
    elif name.count(".") < 2:
        yield errors.invalid(path, name, "should be a domain with at least three segments separated by dots")


@cache
def _webhook(leniency: _Leniency) -> rules.Rule:
    def selector(found: Tree, path: str) -> Errors:
        return labels.validate_selector(found, path, lenient_values=leniency.selectors)

    side_effects = _SIDE_EFFECTS if leniency.side_effects else _NO_SIDE_EFFECTS
    reviews = _reviews if leniency.reviews else rules.every(_reviews, _known_reviews)
    return rules.fields(
        "admissionregistration.v1.MutatingWebhook",
        rules.required("name", _qualified),
        rules.each("rules", admission_rules.validate_rule),
        rules.maybe_one_of("failurePolicy"),
        rules.maybe_one_of("matchPolicy"),
        rules.present(
            "sideEffects", rules.enum(*side_effects), detail=f"must specify one of {', '.join(side_effects)}"
        ),
        rules.optional("timeoutSeconds", rules.between(1, 30, "the timeout value must be between 1 and 30 seconds")),
        rules.optional("namespaceSelector", selector),
        rules.optional("objectSelector", selector),
        rules.maybe_one_of("reinvocationPolicy"),
        rules.always("clientConfig", _client, default={}),
        *(() if leniency.conditions else (rules.optional("matchConditions", admission_rules.validate_conditions),)),
        rules.required("admissionReviewVersions", reviews, detail=f"must specify one of {', '.join(_REVIEWS)}"),
    )


def _client(config: Tree, path: str) -> Errors:
    url, service = config.get("url"), config.get("service")
    if url is not None and service is None:
        return validate_url(url, f"{path}.url")
    if service is not None and url is None:
        return validate_service(service, f"{path}.service")
    return [errors.required(path, "exactly one of url or service is required")]


def _recognized(hook: Tree) -> bool:
    versions = hook.get("admissionReviewVersions") or ()
    return not versions or any(version in _REVIEWS for version in versions)


def validate_url(url: str, path: str) -> Errors:
    """Where a webhook is reached, from outside of the cluster."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError as error:
        return [errors.required(path, f'url must be a valid URL: parse "{url}": {error}{_FORM}')]
    found: list[FieldError] = []
    if parts.scheme != "https":
        found.append(errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}"))
    if not host:
        found.append(errors.invalid(path, "", f"host must be specified{_FORM}"))
    if "@" in parts.netloc:
        user = parts.netloc.rpartition("@")[0]
        found.append(errors.invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(errors.invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(errors.invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


def _port(port: int, path: str) -> Errors:
    if messages := names.port_number(port):
        yield errors.invalid(path, port, f"port is not valid: {', '.join(messages)}")


def _service_path(target: str, path: str) -> Errors:
    if target in ("/", ""):
        return
    if target == "//":
        yield errors.invalid(path, target, "segment[0] may not be empty")
        return
    if not target.startswith("/"):
        yield errors.invalid(path, target, "must start with a '/'")
    rule: Callable[[str], list[str]] = names.dns1123_subdomain
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            yield errors.invalid(path, target, f"segment[{index}] may not be empty")
            continue
        yield from (errors.invalid(path, target, f"segment[{index}]: {message}") for message in rule(step))


validate_service = rules.fields(
    "",
    # upstream: pkg/apis/admissionregistration/validation (passes name and namespace in the other order)
    rules.required("namespace", at="name"),
    rules.required("name", at="namespace"),
    rules.always("port", _port, default=0),
    rules.optional("path", _service_path),
)
"""A service that is called."""


def _reviews(versions: list[str], path: str) -> Errors:
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield errors.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from errors.invalid_each(f"{path}[{index}]", version, names.dns1035_label(version))


def _known_reviews(versions: list[str], path: str) -> Errors:
    if not any(version in _REVIEWS for version in versions):
        yield errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")
