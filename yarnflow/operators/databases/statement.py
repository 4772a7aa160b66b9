"""A statement with ``?`` for its values, as JDBC has them, for Python's drivers.

Decides which question marks are values: none in quotes, in comments or written twice (``??`` is JDBC's way to
write PostgreSQL's operator ``?``).
"""

from __future__ import annotations

import re
from typing import Final

#: what is taken as it is, longest first; an unclosed quote or comment goes to the end
_TOKENS: Final = re.compile(
    r"""
      '(?:[^']|'')*(?:'|$)
    | "(?:[^"]|"")*(?:"|$)
    | `[^`]*(?:`|$)
    | --[^\n]*
    | /\*.*?(?:\*/|$)
    | (?P<dollar>\$(?:[A-Za-z_]\w*)?\$).*?(?:(?P=dollar)|$)
    | (?P<twice>\?\?)
    | (?P<value>\?)
    """,
    re.DOTALL | re.VERBOSE,
)


def count_values(sql: str) -> int:
    """How many values a statement takes."""
    return sum(found.lastgroup == "value" for found in _TOKENS.finditer(sql))


def with_marks(sql: str, mark: str) -> str:
    """The statement with another mark for its values.

    Parameters
    ----------
    sql : str
        ``INSERT INTO t VALUES (?, ?)``.
    mark : str
        The driver's: ``%s``, which wants every other ``%`` twice, or ``?``.
    """
    doubled = "%%" if mark == "%s" else "%"
    parts: list[str] = []
    end = 0
    for found in _TOKENS.finditer(sql):
        parts.append(sql[end : found.start()].replace("%", doubled))
        end = found.end()
        match found.lastgroup:
            case "value":
                parts.append(mark)
            case "twice":
                # a driver that has ? for values has no way to write the operator
                parts.append("?" if mark == "%s" else "??")
            case _:
                parts.append(found.group().replace("%", doubled))
    parts.append(sql[end:].replace("%", doubled))
    return "".join(parts)
