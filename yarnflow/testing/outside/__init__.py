"""What programs outside of a cluster talk to: its REST interface and the command ``yarnflow``.

Runs in tests, over real sockets and as a real process.  Never decides anything: both answer what a test says.
"""
