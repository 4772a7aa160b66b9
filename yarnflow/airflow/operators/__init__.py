"""Tasks about one job each.  Run in a worker; what waits long is left to a trigger."""
