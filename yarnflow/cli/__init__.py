"""The ``yarnflow`` command: one module per verb.  The only package that imports click and rich.

Runs in the user's command.  Reads options and shows results.  Never decides how a verb is
done: ``client`` does.
"""
