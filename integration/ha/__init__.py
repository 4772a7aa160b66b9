"""Election, leases and stores against a real ZooKeeper."""
