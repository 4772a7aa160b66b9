"""The JobManager process: a candidate, and the leader's Dispatcher, ResourceManager and JobMasters.

Never starts a driver or a TaskManager itself: its supervisor does.
"""
