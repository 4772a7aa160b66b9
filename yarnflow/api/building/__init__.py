"""How the calls of a program become operators: definitions, types, collections, settings.

Used by the classes users see, where a program runs.  Never decides how users call them
(:mod:`yarnflow.api.datastream`) nor what a graph may be (:mod:`yarnflow.graph`).
"""
