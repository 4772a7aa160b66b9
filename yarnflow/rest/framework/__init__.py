"""How requests become calls of handlers, and what handlers answer becomes JSON.

Runs in the JobManager, in a thread with an event loop and in a few for handlers.  Bounds what clients may
send and hold, and decides who may read and write; it knows no path of ours.
"""
