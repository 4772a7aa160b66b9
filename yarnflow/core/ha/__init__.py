"""Who leads, and until when a holder of a lease may write; the protocols of election, leases and stores.

Decided in each JobManager and driver from its own clock.  Never decides how ZooKeeper is asked.
"""
