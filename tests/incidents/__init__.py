"""Twenty incidents: what is set up, what happens, and what a trace has to say of it in its first five lines."""
