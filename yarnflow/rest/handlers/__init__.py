"""What is done for each path: reads, and asks the Dispatcher to change something.

Runs in threads that may block.  Never decides what is true, and keeps nothing.
"""
