"""Values as Go prints them with ``%v``: ``map[a:1 b:[x y]]``. Some errors echo documents that way."""


def go_value(value: object) -> str:
    """``%v`` of a decoded JSON value: keys sorted, text without quotes."""
    if value is None:
        return "<nil>"
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{go_value(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_value(item) for item in value) + "]"
    return go_float(value) if isinstance(value, float) else str(value)


def go_float(value: float) -> str:
    """``%v`` of a float64: the shortest text, with an exponent below 1e-4 and from 1e21."""
    if value == int(value) and abs(value) < 1e21:
        return str(int(value))
    text = repr(value)
    if "e" not in text:
        return text
    mantissa, _, exponent = text.partition("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa}e{sign}{exponent.lstrip('+-').rjust(2, '0')}"


def go_type(value: object) -> str:
    """``%s`` of a decoded JSON value's type."""
    if value is None:
        return "%!s(<nil>)"
    if isinstance(value, bool):
        return "bool"
    names: dict[type, str] = {str: "string", int: "int64", float: "float64", dict: "map[string]interface {}"}
    return names.get(type(value), "[]interface {}")


def same_type(left: object, right: object) -> bool:
    """Whether two decoded JSON values have the same Go type."""
    return type(left) is type(right)


def same(left: object, right: object) -> bool:
    """Go's ``==`` on two scalars: 1 is neither 1.0 nor true."""
    return type(left) is type(right) and left == right
