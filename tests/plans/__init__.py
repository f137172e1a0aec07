"""Plans against what happened: scenarios recorded with the Go manager on a real API server, and how plans agree."""
