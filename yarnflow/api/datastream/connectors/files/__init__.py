"""How programs describe files that are read and written; descriptions only, which Spark carries out.

PyFlink's names are in :mod:`yarnflow.api.datastream.connectors.file_system`.
"""
