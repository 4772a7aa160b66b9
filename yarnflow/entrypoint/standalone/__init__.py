"""The supervisors of clusters without YARN, and a local cluster in the process of one command.

Never decides about jobs; never outlives the processes it owns.
"""
