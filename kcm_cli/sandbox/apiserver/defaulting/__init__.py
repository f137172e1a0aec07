"""Values that the API server fills in where a client leaves fields out: what several kinds have in common."""
