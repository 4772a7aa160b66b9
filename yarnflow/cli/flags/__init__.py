"""Flags that several verbs have, declared as tables: Flink's, ``spark-submit``'s and our own.

Runs in the user's command.  Turns what was typed into values of options and programs.  Never decides
what a verb does with them.
"""
