"""The secret between one job's driver and its executors.

Both sides derive it from the cluster secret, which each of them has: it never travels.
"""

from __future__ import annotations

import hashlib
import hmac

from yarnflow.core.ids import JobId


def spark_secret(cluster_secret: bytes, job_id: JobId) -> str:
    """Spark's authentication secret of a job, 64 hexadecimal digits; tells nothing about the cluster's."""
    return hmac.new(cluster_secret, f"spark:{job_id}".encode(), hashlib.sha256).hexdigest()
