"""Files in volumes: keys of Secrets and ConfigMaps, the downward API, and projected volumes.

upstream: pkg/apis/core/validation/validation.go#validateProjectionSources, #validateKeyToPath,
#validateDownwardAPIVolumeFile
"""

from kcm_cli.sandbox.apiserver.types import Errors, Tree
from kcm_cli.sandbox.apiserver.validation import errors, file_paths, rules
from kcm_cli.sandbox.apiserver.validation.container_env import VOLUME_FIELDS, field_selector, resource_selector

TOKEN_SECONDS = rules.every(
    rules.at_least(600, "may not specify a duration less than 10 minutes"),
    rules.at_most(2**32, "may not specify a duration larger than 2^32 seconds"),
)
"""The lifetime of a token."""

DEFAULT_MODE = rules.optional("defaultMode", file_paths.mode)
_PATH = rules.always("path", file_paths.not_reserved)
_FACT = field_selector(*VOLUME_FIELDS)

key_to_path = rules.fields(
    rules.required("key"), rules.required("path"), _PATH, rules.optional("mode", file_paths.mode)
)
"""A key and its file."""

KEYS = rules.each("items", key_to_path)


def _fact(item: Tree, path: str) -> Errors:
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from _FACT(field, f"{path}.fieldRef")
        if resource is not None:
            yield errors.invalid(path, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously")
    elif resource is not None:
        yield from resource_selector(resource, f"{path}.resourceFieldRef", volume=True)
    else:
        yield errors.required(path, "one of fieldRef and resourceFieldRef is required")


downward_file = rules.fields(rules.required("path"), _PATH, _fact, rules.optional("mode", file_paths.mode))
"""A field of the pod and its file."""

_TOKEN = rules.fields(rules.always("expirationSeconds", TOKEN_SECONDS, default=0))
_PROJECTED, _NAMED = rules.fields(DEFAULT_MODE), rules.fields(rules.required("name"))
_TOKEN_PATH = rules.fields(rules.required("path", file_paths.not_reserved))


def validate_projected(source: Tree, path: str) -> Errors:
    """Check the sources of a projected volume, and that no two write the same file."""
    taken: set[str] = set()

    def clash(target: str, shown: str) -> Errors:
        if target in taken:
            yield errors.invalid(path, shown, "conflicting duplicate paths")
        elif target:
            taken.add(target)

    yield from _PROJECTED(source, path)
    for index, part in enumerate(source.get("sources") or ()):
        place = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (items := part.get(kind)) is not None:
                yield from _NAMED(items, f"{place}.{kind}")
                for number, item in enumerate(items.get("items") or ()):
                    yield from key_to_path(item, f"{place}.{kind}.items[{number}]")
                    yield from clash(item.get("path", ""), items.get("name", ""))
        for item in (part.get("downwardAPI") or {}).get("items") or ():
            yield from downward_file(item, f"{place}.downwardAPI")
            yield from clash(item.get("path", ""), item.get("path", ""))
        if (token := part.get("serviceAccountToken")) is not None:
            yield from _TOKEN(token, f"{place}.serviceAccountToken")
            yield from _TOKEN_PATH(token, path)
        if len(part) > 1:
            yield errors.forbidden(place, "may not specify more than 1 volume type per source")
