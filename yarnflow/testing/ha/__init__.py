"""Elections, leases and the end of a cluster, as in :mod:`yarnflow.core.ha.ports`.

Kept in the test's own process, also for several masters in it.  Never change by themselves: who leads and
who loses a lease is for the test to say.
"""
