"""The deciders, and the values and protocols all packages share.  Pure: no threads, clocks, files or sockets.

Used in every process.  Time, ids and randomness come with the events; what is to be done is returned as
effects.  Never carries an effect out.
"""
