"""The Dispatcher: accepts, recovers and lists jobs, and owns one JobMaster for each that runs.

Runs in the leading JobManager.  Never decides how one job runs: its JobMaster does.
"""
