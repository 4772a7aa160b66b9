"""Elections, leases and cluster ends that change when the test says so; see :mod:`yarnflow.core.ha.ports`."""
