"""The parts streams are made of: what each of them records, windows, connected streams.

Used by the classes of :mod:`yarnflow.api.datastream`, where a program runs.  Never decides what a call
means (:mod:`yarnflow.api.building`).
"""
