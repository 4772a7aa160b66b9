"""What a program's saved state depends on, and whether a program can start from a state.

Decided by comparing shapes, before anything is read or written.  Never decides where state lies:
:mod:`yarnflow.operators.task.state_layout` does, for operators on elements, and Spark for others.
"""
