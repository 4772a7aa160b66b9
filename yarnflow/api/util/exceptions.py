"""Errors of the Java side.  PyFlink: ``pyflink.util.exceptions``; none of them is ever raised here."""


class JavaException(Exception):
    """What Java raised."""


class TableException(JavaException):
    """What the Table API raised."""
