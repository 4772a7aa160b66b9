"""What a client does: load a program, find a cluster, submit, watch."""
