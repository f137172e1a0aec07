"""A copy of a cluster, made from a snapshot, that runs in this process on virtual time."""
