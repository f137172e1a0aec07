"""The addresses of webhooks, and the versions of reviews that they accept.

upstream: apiserver pkg/util/webhook/validation.go; for review versions pkg/apis/admissionregistration/validation and
apiextensions-apiserver pkg/apis/apiextensions/validation
"""

from collections.abc import Sequence

from kcm_cli.machinery import names
from kcm_cli.machinery.formats import decoded_base64
from kcm_cli.machinery.urls import UrlError, parse
from kcm_cli.rest.tls import bundle_fault
from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, rules

REVIEWS = ("v1", "v1beta1")
_FORM = "; desired format: https://host[/path]"


def client(config: Tree, path: str) -> Errors:
    """A ``clientConfig``: a URL or a service."""
    url, service = config.get("url"), config.get("service")
    if url is not None and service is None:
        return _url(url, f"{path}.url")
    if service is not None and url is None:
        return _SERVICE(service, f"{path}.service")
    return [errors.required(path, "exactly one of url or service is required")]


def ca_bundle(config: Tree, path: str) -> Errors:
    """Check the CA bundle of a ``clientConfig``: PEM in base64, or absent for the system's."""
    text = config.get("caBundle") or ""
    fault = bundle_fault(decoded_base64(text)) if text else ""
    if fault:
        yield errors.invalid(f"{path}.caBundle", text, fault)


def trusts_nothing(definition: Tree) -> bool:
    """Whether the CA bundle of a definition's conversion webhook has no valid certificate."""
    webhook = (definition["spec"].get("conversion") or {}).get("webhook") or {}
    return any(ca_bundle(webhook.get("clientConfig") or {}, ""))


def _url(url: str, path: str) -> Errors:
    try:
        parts = parse(url)
    except UrlError as error:
        yield errors.required(path, f"url must be a valid URL: {error}{_FORM}")
        return
    if parts.scheme != "https":
        yield errors.invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{_FORM}")
    if not parts.host:
        yield errors.invalid(path, "", f"host must be specified{_FORM}")
    if parts.user is not None:
        yield errors.invalid(path, parts.user, "user information is not permitted in the URL")
    if parts.fragment:
        yield errors.invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield errors.invalid(path, parts.query, "query parameters are not permitted in the URL")


def _path(target: str, path: str) -> Errors:
    if target in ("/", ""):
        return
    if target == "//":
        yield errors.invalid(path, target, "segment[0] may not be empty")
        return
    if not target.startswith("/"):
        yield errors.invalid(path, target, "must start with a '/'")
    for index, step in enumerate(target[1:].removesuffix("/").split("/")):
        if step:
            messages = [f"segment[{index}]: {message}" for message in names.dns1123_subdomain(step)]
        else:
            messages = [f"segment[{index}] may not be empty"]
        yield from errors.invalid_each(path, target, messages)


PORT = rules.always("port", rules.form(names.port_number, start="port is not valid: ", separator=", "), default=443)
"""The port of a webhook's Service."""

_SERVICE = rules.fields(
    # upstream's callers pass name and namespace in the wrong order, so errors are about the other one
    rules.required("namespace", at="name"),
    rules.required("name", at="namespace"),
    PORT,
    rules.optional("path", _path),
)


def reviews(versions: Sequence[str], path: str) -> Errors:
    """Check versions of reviews: names without duplicates."""
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield errors.invalid(f"{path}[{index}]", version, "duplicate version")
        else:
            yield from errors.invalid_each(f"{path}[{index}]", version, names.dns1035_label(version))
        seen.add(version)


known_review = rules.must(
    lambda versions: any(version in REVIEWS for version in versions),
    f"must include at least one of {', '.join(REVIEWS)}",
)
"""Versions of which the server sends at least one."""
