"""What the processes run: each room is one kind of process, its ``main`` puts the parts together.

The only package that sees both ``runtime`` and its adapters.  Never decides anything about jobs: ``core`` and
``runtime`` do.
"""
