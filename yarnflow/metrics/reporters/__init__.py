"""Who is told of the metrics: Prometheus asks, OpenTelemetry is sent them.

Runs in the leading JobManager; a library is imported only when its reporter is configured.  What a metric
means is not known here, and nothing is changed on the way but its name.
"""
