"""The failures that upstream has, too."""

FAILURES = (
    "failed to create typed patch object",
    "failed to create manager for existing fields",
    "failed to convert new object",
    "failed to merge config",
    "Internal error occurred: the spec replicas field",
    "list element types are not identical",
    "unknown patch type",
    "unable to find api field",
    "map: map[",
    "expected a ",
    "cannot merge lists without merge key",
    "no elements in any of the given slices",
    "merging lists cannot yet be specified in the patch",
    "value for key ",
    "The order in patch list",
    "resourceVersion",
    "target.",
    "[target.",
    "strconv.ParseUint",
    "Internal Server Error: ",
)
"""How the messages of answers with status 500 begin."""
