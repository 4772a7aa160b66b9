"""Thrift between the processes of a cluster.

The only package that imports ``thrift``.  From the outside in: the IDL in ``thrift/`` and the
code generated from it (``_gen``); :mod:`~yarnflow.rpc.codec` between generated structs and the
values of :mod:`yarnflow.core.messages`; :mod:`~yarnflow.rpc.auth` at the start of every
connection; :mod:`~yarnflow.rpc.server` and :mod:`~yarnflow.rpc.client`; and
:mod:`~yarnflow.rpc.gateways`, which is what the rest of yarnflow sees.

Used in every process that talks to another machine.  No ``T…`` type leaves this package,
and nothing here decides what a call means.
"""
