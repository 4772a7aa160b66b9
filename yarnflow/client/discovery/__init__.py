"""The clusters of a user, wherever they run: this machine, a standalone cluster, YARN.

Runs in the user's command.  Asks all at the same time, each for a limited time.  Never decides what is
done with them.
"""
