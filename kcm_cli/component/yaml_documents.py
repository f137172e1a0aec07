"""YAML as configuration files have it: without duplicate keys, and with dates as strings."""

import yaml

from kcm_cli.machinery.yaml_errors import described, load_all, without_dates


class _Loader(yaml.SafeLoader):
    """A YAML loader that refuses duplicate keys, and reads dates as strings."""


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    found: dict[object, object] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str):
            raise yaml.MarkedYAMLError(
                problem=f"field names must be strings, not {key!r}", problem_mark=key_node.start_mark
            )
        if key in found:
            raise yaml.MarkedYAMLError(problem=f'field "{key}" is given twice', problem_mark=key_node.start_mark)
        found[key] = loader.construct_object(value_node, deep=True)
    return found


_Loader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)
_Loader.yaml_implicit_resolvers = without_dates(yaml.SafeLoader)


def documents(text: str) -> list[object]:
    """The documents of a text. Raises ValueError with the line of the error."""
    try:
        return load_all(text, _Loader)
    except yaml.YAMLError as error:
        raise ValueError(described(error)) from error
