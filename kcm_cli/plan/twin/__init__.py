"""A cluster that goes on from a snapshot, in this process and on virtual time."""
