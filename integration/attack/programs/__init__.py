"""Programs of the attacker; each is started by the test of its name."""
