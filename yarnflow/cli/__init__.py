"""The ``yarnflow`` command: one module per verb.  The only package that imports click and rich."""
