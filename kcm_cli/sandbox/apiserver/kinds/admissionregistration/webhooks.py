"""Configurations of validating and mutating webhooks.

Source: pkg/apis/admissionregistration/validation/validation.go, apiserver pkg/util/webhook/validation.go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules
from kcm_cli.sandbox.apiserver.types import Errors, FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors, labels, metadata

_NO_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_SIDE_EFFECTS = ("None", "NoneOnDryRun", "Some", "Unknown")
_REINVOCATIONS = ("IfNeeded", "Never")
_REVIEWS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"
_SELECTORS = ("namespaceSelector", "objectSelector")


@dataclass(frozen=True, slots=True)
class _Leniency:
    """What an older object has already and may keep."""

    conditions: bool = False
    side_effects: bool = False
    reviews: bool = False
    names: bool = False
    selectors: bool = False


_STRICT = _Leniency()


def validate_webhooks(doc: Tree) -> Errors:
    """A new configuration, of either kind."""
    return _configuration(doc, _STRICT)


def validate_webhooks_update(new: Tree, old: Tree) -> Errors:
    hooks, known = new.get("webhooks") or [], old.get("webhooks") or []
    same = len(hooks) == len(known) and all(
        hook.get("matchConditions") == before.get("matchConditions") for hook, before in zip(hooks, known, strict=True)
    )
    leniency = _Leniency(
        conditions=same,
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in known),
        reviews=any(not _recognized(hook) for hook in known),
        names=len({hook.get("name", "") for hook in known}) < len(known),
        selectors=any(any(labels.validate_selector(hook.get(field), "")) for hook in known for field in _SELECTORS),
    )
    return _configuration(new, leniency)


def _recognized(hook: Tree) -> bool:
    versions = hook.get("admissionReviewVersions") or ()
    return not versions or any(version in _REVIEWS for version in versions)


def _configuration(doc: Tree, leniency: _Leniency) -> Errors:
    yield from metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    seen: set[str] = set()
    for index, hook in enumerate(doc.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        yield from _webhook(hook, path, leniency)
        versions = hook.get("admissionReviewVersions") or []
        yield from _reviews(versions, f"{path}.admissionReviewVersions", leniency)
        if name and not leniency.names:
            if name in seen:
                yield errors.duplicate(f"{path}.name", name)
            seen.add(name)


def _qualified(name: str, path: str) -> Errors:
    if not name:
        return [errors.required(path)]
    if messages := names.dns1123_subdomain(name):
        return [errors.invalid(path, name, ",".join(messages))]
    if name.count(".") < 2:
        return [errors.invalid(path, name, "should be a domain with at least three segments separated by dots")]
    return []


def _webhook(hook: Tree, path: str, leniency: _Leniency) -> Errors:
    yield from _qualified(hook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        yield from admission_rules.validate_rule(rule, f"{path}.rules[{index}]")
    choices = (
        ("failurePolicy", admission_rules.FAILURE_POLICIES),
        ("matchPolicy", admission_rules.MATCH_POLICIES),
    )
    for field, allowed in choices:
        value = hook.get(field)
        if value is not None and value not in allowed:
            yield errors.not_supported(f"{path}.{field}", value, allowed)
    yield from _side_effects(hook.get("sideEffects"), f"{path}.sideEffects", leniency)
    timeout_s, again = hook.get("timeoutSeconds"), hook.get("reinvocationPolicy")
    if timeout_s is not None and not 1 <= timeout_s <= 30:
        yield errors.invalid(f"{path}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
    for field in _SELECTORS:
        place = f"{path}.{field}"
        yield from labels.validate_selector(hook.get(field), place, lenient_values=leniency.selectors)
    if again is not None and again not in _REINVOCATIONS:
        yield errors.not_supported(f"{path}.reinvocationPolicy", again, _REINVOCATIONS)
    yield from _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    if leniency.conditions:
        return
    conditions = hook.get("matchConditions") or []
    yield from admission_rules.validate_conditions(conditions, f"{path}.matchConditions")


def _side_effects(value: str | None, path: str, leniency: _Leniency) -> Errors:
    allowed = _SIDE_EFFECTS if leniency.side_effects else _NO_SIDE_EFFECTS
    if value is None:
        return [errors.required(path, f"must specify one of {', '.join(allowed)}")]
    return [] if value in allowed else [errors.not_supported(path, value, allowed)]


def _client(config: Tree, path: str) -> Errors:
    url, service = config.get("url"), config.get("service")
    if url is not None and service is None:
        return validate_url(url, f"{path}.url")
    if service is not None and url is None:
        return validate_service(service, f"{path}.service")
    return [errors.required(path, "exactly one of url or service is required")]


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


def validate_service(service: Tree, path: str) -> Errors:
    """A service that is called."""
    fields = ("name", "namespace")
    yield from (
        errors.required(f"{path}.{shown}")
        for shown, field in zip(fields, reversed(fields), strict=True)
        if not service.get(field)
    )
    port, target = service.get("port", 0), service.get("path")
    if messages := names.port_number(port):
        yield errors.invalid(f"{path}.port", port, f"port is not valid: {', '.join(messages)}")
    if target is not None:
        yield from _service_path(target, f"{path}.path")


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


def _reviews(versions: list[str], path: str, leniency: _Leniency) -> Errors:
    if not versions:
        yield errors.required(path, f"must specify one of {', '.join(_REVIEWS)}")
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield errors.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from errors.invalid_each(f"{path}[{index}]", version, names.dns1035_label(version))
    if not leniency.reviews and not any(version in _REVIEWS for version in versions):
        yield errors.invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")
