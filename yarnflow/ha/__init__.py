"""The only importer of kazoo: election, stores and leases in ZooKeeper."""
