"""The operators of a program, and the contexts they hand to users' functions.

Runs in workers, a chunk of elements at a time; definitions are made by the API and travel as plain
values.  Never decides where output goes nor when a watermark advances: the runner of the level does.
"""
