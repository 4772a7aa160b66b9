"""The REST interface of a master process: its port and tokens, and the view of a leader that answers.

Runs in every JobManager process.  Decides nothing about jobs: it asks the Dispatcher and the ResourceManager.
"""
