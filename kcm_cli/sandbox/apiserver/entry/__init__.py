"""Where requests enter the API server: what stands between a client and the answer (faults, records)."""
