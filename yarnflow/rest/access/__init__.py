"""What lets somebody use the REST interface: tokens, codes and sessions made of them, and the names it has.

Pure but for the machine's own names; the requests themselves are checked in ``rest.framework``.
"""
