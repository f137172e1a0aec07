"""``kcm trace``: what followed from a change, and why something happened, from the causes that a manager keeps."""
