"""Equality of JSON values in which, unlike in Python, a boolean is no number and 1 is not 1.0."""


def same(left: object, right: object) -> bool:
    """Whether two values are the same."""
    if left is right:
        return True
    if type(left) is not type(right):
        return False
    if isinstance(left, dict) and isinstance(right, dict):
        return len(left) == len(right) and all(key in right and same(item, right[key]) for key, item in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(a, b) for a, b in zip(left, right, strict=True))
    return left == right
