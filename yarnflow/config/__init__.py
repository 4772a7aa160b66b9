"""Options: declared once, read from files, environment and command line, checked and typed.

Used in every process.  Never decides anything by an option's value: whoever reads it does.
"""
