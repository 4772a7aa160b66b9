"""Windows: their assigners and triggers, and the operator that keeps and evaluates them.

Runs in workers as a part of a task, and where a program is built.  Users subclass the bases of
this room.  Never decides when a watermark or a clock moves, nor where state lies; the task moves
both and hands them in.
"""
