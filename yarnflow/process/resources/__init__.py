"""What processes of this machine use.

Runs in all processes of a cluster.  It reads, and never ends anything for what it uses.
"""
