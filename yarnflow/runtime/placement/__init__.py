"""On which master drivers are started: of the JobManager that leads.

Never decides whether a driver is wanted, nor how it is started: that is the JobMaster's, and the
supervisor's of the master.
"""
