"""Child processes, the supervisor that owns them and what they need on this machine."""
