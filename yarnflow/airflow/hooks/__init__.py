"""The connection to a cluster: what is configured, the command, REST, and one job followed to its end."""
