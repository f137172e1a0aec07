"""Names, columns, subresources, selectable fields and conversion of a definition.

upstream: apiextensions-apiserver pkg/apis/apiextensions/validation/validation.go
"""

from collections.abc import Iterator
from urllib.parse import urlsplit

from kcm_cli.machinery import names
from kcm_cli.machinery.errors import FormatError
from kcm_cli.sandbox.apiserver.crd.checks.paths import resolve
from kcm_cli.sandbox.apiserver.crd.findings import invalid
from kcm_cli.sandbox.apiserver.crd.structural import structural
from kcm_cli.sandbox.apiserver.types import FieldError, Tree
from kcm_cli.sandbox.apiserver.validation import errors

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MIXED = "may have mixed case, but should otherwise match: "
_SELECTABLE = ("string", "boolean", "integer")
_NOT_SELECTABLE = (
    "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed."
)
MOST_SELECTABLE = 8
_REVIEWS = ("v1", "v1beta1")


def check_names(given: Tree, path: str) -> Iterator[FieldError]:
    """Names, where they are set."""
    for field in ("plural", "singular"):
        if (name := given.get(field)) and (wrong := names.dns1035_label(name)):
            yield invalid(f"{path}.{field}", name, ",".join(wrong))
    for field in ("kind", "listKind"):
        if (name := given.get(field)) and (wrong := names.dns1035_label(name.lower())):
            yield invalid(f"{path}.{field}", name, _MIXED + ",".join(wrong))
    yield from _labels(given, "shortNames", path)
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    yield from _labels(given, "categories", path)


def _labels(given: Tree, field: str, path: str) -> Iterator[FieldError]:
    for index, name in enumerate(given.get(field) or ()):
        if wrong := names.dns1035_label(name):
            yield invalid(f"{path}.{field}[{index}]", name, ",".join(wrong))


def check_column(column: Tree, path: str) -> Iterator[FieldError]:
    """A column of tables."""
    if not column.get("name"):
        yield errors.required(f"{path}.name")
    types = f"must be one of {','.join(_COLUMN_TYPES)}"
    type_, format_, where = column.get("type"), column.get("format"), column.get("jsonPath")
    if not type_:
        yield errors.required(f"{path}.type", types)
    elif type_ not in _COLUMN_TYPES:
        yield invalid(f"{path}.type", type_, types)
    if format_ and format_ not in _COLUMN_FORMATS:
        yield invalid(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not where:
        yield errors.required(f"{path}.JSONPath")
    else:
        yield from _simple_path(where, f"{path}.JSONPath")


def _simple_path(text: str, path: str) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")


def check_subresources(parts: Tree | None, path: str) -> Iterator[FieldError]:
    """The paths of a scale."""
    scale = (parts or {}).get("scale")
    if scale is None:
        return
    for field, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        text = scale.get(field) or ""
        if not text:
            yield errors.required(f"{path}.scale.{field}")
        elif not text.startswith("."):
            yield from _simple_path(text, f"{path}.scale.{field}")
        elif not text.startswith(root):
            yield invalid(f"{path}.scale.{field}", text, f"should be a json path under {root.rstrip('.')}")
    if selector := scale.get("labelSelectorPath"):
        where = f"{path}.scale.labelSelectorPath"
        if not selector.startswith("."):
            yield from _simple_path(selector, where)
        elif not selector.startswith((".spec.", ".status.")):
            yield invalid(where, selector, "should be a json path under either .spec or .status")


def check_selectable(fields: list[Tree], schema: Tree, path: str, *, any_number: bool) -> Iterator[FieldError]:
    """The fields that selectors may name. ``any_number``: there were too many before."""
    seen: set[str] = set()
    for index, field in enumerate(fields):
        where, text = f"{path}[{index}].jsonPath", field.get("jsonPath") or ""
        if not text:
            yield errors.required(where)
            continue
        try:
            normal, first, found = resolve(text, structural(schema), brackets=False)
        except FormatError as error:
            yield invalid(where, text, f"is an invalid path: {error}")
            continue
        if first == "metadata":
            yield invalid(where, text, "must not point to fields in metadata")
        if found.type not in _SELECTABLE:
            yield invalid(where, text, _NOT_SELECTABLE)
        if normal in seen:
            yield errors.duplicate(where, text)
        seen.add(normal)
    if len(seen) > MOST_SELECTABLE and not any_number:
        yield errors.too_many(path, len(seen), MOST_SELECTABLE)


def known_reviews(conversion: Tree | None) -> bool:
    """Whether an existing conversion names a version of reviews that there is, or none at all."""
    versions = (((conversion or {}).get("webhook") or {}).get("conversionReviewVersions")) or ()
    return not versions or any(version in _REVIEWS for version in versions)


def check_conversion(conversion: Tree | None, path: str, *, known_review: bool) -> Iterator[FieldError]:
    """How versions are converted."""
    if conversion is None:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    client, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if not strategy:
        yield errors.required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield errors.not_supported(f"{path}.strategy", strategy, ["None", "Webhook"])
    if strategy == "Webhook":
        yield from _check_client(client, f"{path}.webhookClientConfig")
        yield from _check_reviews(reviews, f"{path}.conversionReviewVersions", known=known_review)
        return
    detail = "should not be set when strategy is not set to Webhook"
    if client is not None:
        yield errors.forbidden(f"{path}.webhookClientConfig", detail)
    if reviews:
        yield errors.forbidden(f"{path}.conversionReviewVersions", detail)


def _check_client(client: Tree | None, path: str) -> Iterator[FieldError]:
    if client is None:
        yield errors.required(path, "required when strategy is set to Webhook")
        return
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield errors.required(path, "exactly one of url or service is required")
    elif url is not None:
        yield from _check_url(url, f"{path}.url")
    elif service is not None:
        yield from _check_service(service, f"{path}.service")


def _check_url(url: str, path: str) -> Iterator[FieldError]:
    form = "; desired format: https://host[/path]"
    try:
        parts = urlsplit(url)
    except ValueError as error:
        yield errors.required(path, f"url must be a valid URL: {error}{form}")
        return
    if parts.scheme != "https":
        yield invalid(path, parts.scheme, f"'https' is the only allowed URL scheme{form}")
    if not parts.netloc:
        yield invalid(path, parts.netloc, f"host must be specified{form}")
    if "@" in parts.netloc:
        yield invalid(path, parts.netloc.rpartition("@")[0], "user information is not permitted in the URL")
    if parts.fragment:
        yield invalid(path, parts.fragment, "fragments are not permitted in the URL")
    if parts.query:
        yield invalid(path, parts.query, "query parameters are not permitted in the URL")


def _check_service(service: Tree, path: str) -> Iterator[FieldError]:
    # upstream hands name and namespace over in the wrong order, and so names the other one
    if not service.get("namespace"):
        yield errors.required(f"{path}.name")
    if not service.get("name"):
        yield errors.required(f"{path}.namespace")
    port, where = service.get("port"), service.get("path")
    if problems := names.port_number(443 if port is None else port):
        yield invalid(f"{path}.port", port, "port is not valid: " + ", ".join(problems))
    if where and where != "/":
        yield from _check_service_path(where, f"{path}.path")


def _check_service_path(where: str, path: str) -> Iterator[FieldError]:
    if where == "//":
        yield invalid(path, where, "segment[0] may not be empty")
        return
    if not where.startswith("/"):
        yield invalid(path, where, "must start with a '/'")
    for index, step in enumerate(where[1:].removesuffix("/").split("/")):
        if not step:
            yield invalid(path, where, f"segment[{index}] may not be empty")
            continue
        for problem in names.dns1123_subdomain(step):
            yield invalid(path, where, f"segment[{index}]: {problem}")


def _check_reviews(versions: list[str], path: str, *, known: bool) -> Iterator[FieldError]:
    if not versions:
        yield errors.required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield invalid(f"{path}[{index}]", version, "duplicate version")
            continue
        for problem in names.dns1035_label(version):
            yield invalid(f"{path}[{index}]", version, problem)
    if known and not any(version in _REVIEWS for version in versions):
        yield invalid(path, versions, f"must include at least one of {', '.join(_REVIEWS)}")
