"""Windows, and what puts elements into them and says when they are evaluated.

Runs in workers, asked by the operators below, and where a program is built; users subclass the bases
of this room.  Never keeps anything of an element.
"""
