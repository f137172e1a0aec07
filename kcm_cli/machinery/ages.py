"""Ages for people, with one or two units."""

_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_YEAR = 365 * _DAY


def human_duration(seconds: float) -> str:
    """``5s``, ``3m20s``, ``7h5m``, ``3d4h``, ``2y30d``. A second before now counts as 0."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 2 * _MINUTE:
        return f"{max(whole, 0)}s"
    if whole < 10 * _MINUTE:
        return _two(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    if whole < 8 * _HOUR:
        return _two(whole // _HOUR, "h", whole // _MINUTE % 60, "m")
    if whole < 2 * _DAY:
        return f"{whole // _HOUR}h"
    if whole < 8 * _DAY:
        return _two(whole // _DAY, "d", whole // _HOUR % 24, "h")
    if whole < 2 * _YEAR:
        return f"{whole // _DAY}d"
    if whole < 8 * _YEAR:
        return _two(whole // _YEAR, "y", whole // _DAY % 365, "d")
    return f"{whole // _YEAR}y"


def _two(first: int, unit: str, second: int, small: str) -> str:
    return f"{first}{unit}{second}{small}" if second else f"{first}{unit}"
