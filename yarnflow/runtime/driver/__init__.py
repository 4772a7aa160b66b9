"""The endpoint of a driver: follows the leader, keeps the job's lease, runs a backend, reports.

Runs in the driver process.  Never decides whether a job is started again; never touches Spark itself.
"""
