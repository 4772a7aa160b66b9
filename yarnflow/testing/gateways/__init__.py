"""Gateways to other processes, one module each; see :mod:`yarnflow.core.ports`."""
