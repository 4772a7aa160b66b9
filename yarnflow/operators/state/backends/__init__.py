"""How the state of a key group becomes durable: as a log of changes, or as pages read on demand.

Decides what is written in which form, and reads either form; where entries lie is behind
:class:`~yarnflow.operators.state.backends.group_storage.GroupStorage`.
"""
