"""Which question marks of a statement are values."""

import pytest

from yarnflow.operators.databases.statement import count_values, with_marks


@pytest.mark.parametrize(
    "sql, values, for_psycopg, for_sqlite",
    [
        ("INSERT INTO t VALUES (?, ?)", 2, "INSERT INTO t VALUES (%s, %s)", "INSERT INTO t VALUES (?, ?)"),
        ("SELECT 'what?', ?", 1, "SELECT 'what?', %s", "SELECT 'what?', ?"),
        ("SELECT 'it''s ?', \"a?\", `b?`, ?", 1, "SELECT 'it''s ?', \"a?\", `b?`, %s", None),
        ("SELECT 1 -- why?\n, ?", 1, "SELECT 1 -- why?\n, %s", None),
        ("SELECT /* ? \n ? */ ?", 1, "SELECT /* ? \n ? */ %s", None),
        ("SELECT $$ ? $$, $a$ ? $$ ? $a$, ?", 1, "SELECT $$ ? $$, $a$ ? $$ ? $a$, %s", None),
        ("SELECT j ?? 'k', ?", 1, "SELECT j ? 'k', %s", None),
        ("SELECT a % 2, '100%', ?", 1, "SELECT a %% 2, '100%%', %s", "SELECT a % 2, '100%', ?"),
        ("SELECT 'never closed ?", 0, "SELECT 'never closed ?", None),
        ("", 0, "", ""),
    ],
)
def test_marks(sql: str, values: int, for_psycopg: str, for_sqlite: str | None) -> None:
    assert count_values(sql) == values
    assert with_marks(sql, "%s") == for_psycopg
    assert with_marks(sql, "?") == (sql if for_sqlite is None else for_sqlite)
