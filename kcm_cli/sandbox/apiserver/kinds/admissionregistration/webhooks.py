"""Configurations of validating and mutating webhooks.

Source: pkg/apis/admissionregistration/validation/validation.go, apiserver pkg/util/webhook/validation.go.
"""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

from kcm_cli.machinery import names
from kcm_cli.sandbox.apiserver.kinds.admissionregistration import admission_rules
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
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


def validate_webhooks(doc: Tree) -> list[FieldError]:
    """A new configuration, of either kind."""
    return _configuration(doc, _STRICT)


def validate_webhooks_update(new: Tree, old: Tree) -> list[FieldError]:
    hooks, known = new.get("webhooks") or [], old.get("webhooks") or []
    same = len(hooks) == len(known) and all(
        hook.get("matchConditions") == before.get("matchConditions") for hook, before in zip(hooks, known, strict=True)
    )
    leniency = _Leniency(
        conditions=same,
        side_effects=any(hook.get("sideEffects") not in _NO_SIDE_EFFECTS for hook in known),
        reviews=any(not _recognized(hook) for hook in known),
        names=len({hook.get("name", "") for hook in known}) < len(known),
        selectors=any(labels.validate_selector(hook.get(field), "") for hook in known for field in _SELECTORS),
    )
    return _configuration(new, leniency)


def _recognized(hook: Tree) -> bool:
    versions = hook.get("admissionReviewVersions") or ()
    return not versions or any(version in _REVIEWS for version in versions)


def _configuration(doc: Tree, leniency: _Leniency) -> list[FieldError]:
    found = metadata.validate_plain_meta(doc["metadata"], False, metadata.subdomain)
    seen: set[str] = set()
    for index, hook in enumerate(doc.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", hook.get("name", "")
        found += _webhook(hook, path, leniency)
        versions = hook.get("admissionReviewVersions") or []
        found += _reviews(versions, f"{path}.admissionReviewVersions", leniency)
        if name and not leniency.names:
            if name in seen:
                found.append(errors.duplicate(f"{path}.name", name))
            seen.add(name)
    return found


def _qualified(name: str, path: str) -> list[FieldError]:
    if not name:
        return [errors.required(path)]
    if messages := names.dns1123_subdomain(name):
        return [errors.invalid(path, name, ",".join(messages))]
    if name.count(".") < 2:
        detail = "should be a domain with at least three segments separated by dots"
        return [errors.invalid(path, name, detail)]
    return []


def _webhook(hook: Tree, path: str, leniency: _Leniency) -> list[FieldError]:
    found = _qualified(hook.get("name", ""), f"{path}.name")
    for index, rule in enumerate(hook.get("rules") or ()):
        found += admission_rules.validate_rule(rule, f"{path}.rules[{index}]")
    choices = (
        ("failurePolicy", admission_rules.FAILURE_POLICIES),
        ("matchPolicy", admission_rules.MATCH_POLICIES),
    )
    for field, allowed in choices:
        value = hook.get(field)
        if value is not None and value not in allowed:
            found.append(errors.not_supported(f"{path}.{field}", value, allowed))
    found += _side_effects(hook.get("sideEffects"), f"{path}.sideEffects", leniency)
    timeout_s, again = hook.get("timeoutSeconds"), hook.get("reinvocationPolicy")
    if timeout_s is not None and not 1 <= timeout_s <= 30:
        detail = "the timeout value must be between 1 and 30 seconds"
        found.append(errors.invalid(f"{path}.timeoutSeconds", timeout_s, detail))
    for field in _SELECTORS:
        place = f"{path}.{field}"
        found += labels.validate_selector(hook.get(field), place, lenient_values=leniency.selectors)
    if again is not None and again not in _REINVOCATIONS:
        found.append(errors.not_supported(f"{path}.reinvocationPolicy", again, _REINVOCATIONS))
    found += _client(hook.get("clientConfig") or {}, f"{path}.clientConfig")
    if leniency.conditions:
        return found
    conditions = hook.get("matchConditions") or []
    return found + admission_rules.validate_conditions(conditions, f"{path}.matchConditions")


def _side_effects(value: str | None, path: str, leniency: _Leniency) -> list[FieldError]:
    allowed = _SIDE_EFFECTS if leniency.side_effects else _NO_SIDE_EFFECTS
    if value is None:
        return [errors.required(path, f"must specify one of {', '.join(allowed)}")]
    return [] if value in allowed else [errors.not_supported(path, value, allowed)]


def _client(config: Tree, path: str) -> list[FieldError]:
    url, service = config.get("url"), config.get("service")
    if url is not None and service is None:
        return validate_url(url, f"{path}.url")
    if service is not None and url is None:
        return validate_service(service, f"{path}.service")
    return [errors.required(path, "exactly one of url or service is required")]


def validate_url(url: str, path: str) -> list[FieldError]:
    """Where a webhook is reached, from outside of the cluster."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError as error:
        detail = f'url must be a valid URL: parse "{url}": {error}{_FORM}'
        return [errors.required(path, detail)]
    found: list[FieldError] = []
    if parts.scheme != "https":
        detail = f"'https' is the only allowed URL scheme{_FORM}"
        found.append(errors.invalid(path, parts.scheme, detail))
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


def validate_service(service: Tree, path: str) -> list[FieldError]:
    """A service that is called."""
    # upstream: pkg/apis/admissionregistration/validation (passes name and namespace in the other order)
    fields = ("name", "namespace")
    found = [
        errors.required(f"{path}.{shown}")
        for shown, field in zip(fields, reversed(fields), strict=True)
        if not service.get(field)
    ]
    port, target = service.get("port", 0), service.get("path")
    if messages := names.port_number(port):
        found.append(errors.invalid(f"{path}.port", port, f"port is not valid: {', '.join(messages)}"))
    return found if target is None else found + _service_path(target, f"{path}.path")


def _service_path(target: str, path: str) -> list[FieldError]:
    if target in ("/", ""):
        return []
    if target == "//":
        return [errors.invalid(path, target, "segment[0] may not be empty")]
    found: list[FieldError] = []
    if not target.startswith("/"):
        found.append(errors.invalid(path, target, "must start with a '/'"))
    rule: Callable[[str], list[str]] = names.dns1123_subdomain
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if not step:
            found.append(errors.invalid(path, target, f"segment[{index}] may not be empty"))
            continue
        found += [errors.invalid(path, target, f"segment[{index}]: {message}") for message in rule(step)]
    return found


def _reviews(versions: list[str], path: str, leniency: _Leniency) -> list[FieldError]:
    if not versions:
        return [errors.required(path, f"must specify one of {', '.join(_REVIEWS)}")]
    found: list[FieldError] = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(errors.invalid(f"{path}[{index}]", version, "duplicate version"))
        else:
            found += errors.invalid_each(f"{path}[{index}]", version, names.dns1035_label(version))
    if not leniency.reviews and not any(version in _REVIEWS for version in versions):
        detail = f"must include at least one of {', '.join(_REVIEWS)}"
        found.append(errors.invalid(path, versions, detail))
    return found
