"""The operators that keep windows by key and evaluate them, and the definition that makes one.

Runs in workers as a part of a task; the definition is made where a program is built.  Never decides
which windows an element is in nor when one fires: assigners and triggers do.
"""
