"""Chains of operators as a worker runs them, level by level.

Level 0 stands behind the sources; each later level is one exchange further.  Decides in what order
elements, timers and watermarks reach operators and to which key group their results go; never what
an operator does, nor where state is stored.
"""
