"""Parsing of Spark SQL, and of the table functions with which Flink SQL makes windows.

The parser is sqlglot's; loaded only when the first text is looked at.
"""

from __future__ import annotations

from typing import Any, Final

import sqlglot
from sqlglot import TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from yarnflow.errors import InvalidExpression

#: Flink's table functions over ``TABLE name``
WINDOW_TABLES: Final = frozenset(["TUMBLE", "HOP", "SESSION", "CUMULATE"])


class StreamingSpark(Spark):
    """Spark SQL in which ``window(…)`` is a function, also behind GROUP BY, and no clause."""

    class Tokenizer(Spark.Tokenizer):
        #: a clause WINDOW names frames for OVER, which streams have not
        KEYWORDS = {
            text: kind for text, kind in Spark.Tokenizer.KEYWORDS.items() if text not in ("WINDOW", "SESSION")
        }

    class Parser(SparkParser):
        FUNCTION_PARSERS = {
            **SparkParser.FUNCTION_PARSERS,
            **{
                name: lambda parser, name=name: _window_table(parser, name) for name in sorted(WINDOW_TABLES)
            },
        }


def _window_table(parser: Any, name: str) -> exp.Expr:
    """``TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '1' HOUR)``, from behind its parenthesis."""
    return exp.Anonymous(this=name, expressions=parser._parse_csv(lambda: _argument(parser)))


def _argument(parser: Any) -> exp.Expr | None:
    if not parser._match(TokenType.TABLE):
        argument: exp.Expr | None = parser._parse_lambda()
        return argument
    table: exp.Expr = parser._parse_table_parts()
    if parser._match(TokenType.PARTITION_BY):
        # several keys stand in parentheses: a comma ends the argument
        if parser._match(TokenType.L_PAREN, advance=False):
            keys = parser._parse_wrapped_csv(parser._parse_column)
        else:
            keys = [parser._parse_column()]
        table.set("partition", exp.Tuple(expressions=keys))
    return table


def parse_sql(text: str, shown: str) -> exp.Expr:
    """One statement.

    Raises
    ------
    InvalidExpression
        The text does not parse; the message has ``shown`` in it.
    """
    try:
        return sqlglot.parse_one(text, read=StreamingSpark)
    except ParseError as exc:
        first = exc.errors[0] if exc.errors else {}
        near = str(first.get("highlight") or "").strip()
        raise InvalidExpression(
            f"'{shown}' is not valid SQL" + (f" near '{near}'" if near and near != "SELECT" else "")
        ) from exc
    except SqlglotError as exc:
        raise InvalidExpression(f"'{shown}' is not valid SQL: {str(exc).splitlines()[0]}") from exc
