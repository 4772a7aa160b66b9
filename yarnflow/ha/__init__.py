"""The only importer of kazoo: election, stores and leases in ZooKeeper, and the same stores without it.

Used in JobManagers, drivers, supervisors and clients.  Never decides what follows from leading or from a lost
lease: listeners are told.
"""
