"""Attacks of another user of the machine: each has come in once, and must not come in again."""
