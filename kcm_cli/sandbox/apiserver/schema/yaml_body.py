"""YAML as the server reads it: scalars resolved as its parser does, repeated keys noted, keys made text.

Differences from PyYAML's own rules: no timestamps and no base-60 numbers (they stay text), ``y`` and ``n``
are booleans. Only the first document is read.
"""

import yaml

from kcm_cli.machinery.quoting import quote


class YamlError(Exception):
    """The text is not YAML; the message is the server's."""


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Collects repeated keys in ``repeated``."""

    repeated: list[str]

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[object, object]:
        self.flatten_mapping(node)
        out: dict[object, object] = {}
        for key_node, value_node in node.value:
            key = _text(self.construct_object(key_node, deep=True))
            if key in out:
                self.repeated.append(f"line {key_node.start_mark.line + 1}: key {quote(key)} already set in map")
            out[key] = self.construct_object(value_node, deep=True)
        return out


def _construct_map(loader: _Loader, node: yaml.MappingNode) -> dict[object, object]:
    return loader.construct_mapping(node, deep=True)


_SEXAGESIMAL = ("tag:yaml.org,2002:timestamp",)
_Loader.yaml_implicit_resolvers = {
    char: [(tag, pattern) for tag, pattern in resolvers if tag not in _SEXAGESIMAL]
    for char, resolvers in _Loader.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:map", _construct_map)


def _construct_int(loader: _Loader, node: yaml.ScalarNode) -> object:
    text = loader.construct_scalar(node)
    return text if ":" in text else loader.construct_yaml_int(node)


def _construct_float(loader: _Loader, node: yaml.ScalarNode) -> object:
    text = loader.construct_scalar(node)
    return text if ":" in text else loader.construct_yaml_float(node)


def _construct_binary(loader: _Loader, node: yaml.ScalarNode) -> object:
    return loader.construct_yaml_binary(node).decode("utf-8", "replace")


_Loader.add_constructor("tag:yaml.org,2002:int", _construct_int)
_Loader.add_constructor("tag:yaml.org,2002:float", _construct_float)
_Loader.add_constructor("tag:yaml.org,2002:binary", _construct_binary)


def load(data: bytes) -> tuple[object, list[str]]:
    """The value of the first document, and the repeated keys. Raises YamlError."""
    try:
        loader = _Loader(data)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YamlError(_message(error)) from None
    loader.repeated = []
    try:
        return (loader.get_data() if loader.check_data() else None), loader.repeated
    except (yaml.YAMLError, ValueError, UnicodeDecodeError) as error:
        raise YamlError(_message(error)) from None
    finally:
        loader.dispose()


def _message(error: Exception) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error)
    return f"yaml: line {mark.line + 1}: {problem}" if mark is not None else f"yaml: {problem}"


def _text(key: object) -> str:
    """A key as JSON needs it."""
    if isinstance(key, bool):
        return "true" if key else "false"
    if key is None:
        return "null"
    return f"{key:g}" if isinstance(key, float) else str(key)
