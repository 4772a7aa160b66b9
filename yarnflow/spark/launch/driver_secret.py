"""The secret between one driver and its executors.

Both sides derive it from the cluster secret, which each of them has: it never travels.
"""

from __future__ import annotations

import hashlib
import hmac

from yarnflow.core.ids import DriverId


def spark_secret(cluster_secret: bytes, driver_id: DriverId) -> str:
    """Spark's authentication secret of a driver, 64 hexadecimal digits; tells nothing of the cluster's."""
    return hmac.new(cluster_secret, f"spark:{driver_id}".encode(), hashlib.sha256).hexdigest()
