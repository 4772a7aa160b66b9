"""Whether a program can start from a state, and what is said where it cannot.

Queries are found again by name (the uid or position of the operator they are cut at), and within a query
sources and stateful operators by their order, as Spark numbers them, checked against their uids.  Operators
on elements are found by their uids alone: where their state lies is put right when a job starts from it
(:mod:`yarnflow.spark.checkpoints.restoring.moving`).  What only Spark knows (types of Python results, the
plan of a SQL query) is left to Spark.  Flink counterparts: ``StateAssignmentOperation``, ``Checkpoints``
(load and validate).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from yarnflow.core.checkpoint.program_shape import (
    FieldShape,
    OperatorShape,
    ProgramShape,
    QueryShape,
    SourceShape,
)
from yarnflow.graph.state.shape import ELEMENT_QUERY

_NEW_START: Final = "start without state (--restore none)"
_LEFT_BEHIND: Final = "leave its state behind (--allow-non-restored-state)"

#: in kinds of operators, before their state was found by their ids alone
_WITH_LEVEL: Final = re.compile(r", level \d+, ")

_Part = TypeVar("_Part", SourceShape, OperatorShape)


def differences(
    saved: ProgramShape, program: ProgramShape, *, allow_non_restored: bool = False
) -> tuple[str, ...]:
    """Why a program cannot start from a state, one sentence each with what can be done; empty = it can.

    Queries and operators on elements that are new in the program are no difference: they start without
    state.

    Parameters
    ----------
    allow_non_restored : bool
        Nor are queries and operators on elements that are gone: their state is left behind.
    """
    if saved.kind != program.kind:
        kinds = {"GRAPH": "a DataStream program", "SCRIPT": "a PySpark script"}
        return (
            f"the state is of {kinds.get(saved.kind, saved.kind)} and this is "
            f"{kinds.get(program.kind, program.kind)}: submit the former, or {_NEW_START}",
        )
    found: list[str] = []
    by_name = {query.name: query for query in program.queries}
    for query in saved.queries:
        now = by_name.get(query.name)
        if now is not None:
            found.extend(_query_differences(query, now, allow_non_restored))
        elif not allow_non_restored:
            found.append(_missing(query))
    return tuple(found)


def _missing(query: QueryShape) -> str:
    where = f"{query.operator} ({query.origin})" if query.origin else query.operator
    if query.uid:
        return (
            f"no query of the program has the uid '{query.uid}', whose state was saved (then {where}): "
            f"bring that operator back under its uid, {_LEFT_BEHIND}, or {_NEW_START}"
        )
    return (
        f"'{where}', whose state was saved, is not in the program, or not at the same place (it has no uid, "
        f"so it is known by its place only): submit the program as it was, {_LEFT_BEHIND}, or give sources "
        f"and stateful operators uids for the next time and {_NEW_START}"
    )


def _query_differences(
    saved: QueryShape, program: QueryShape, allow_non_restored: bool
) -> Iterator[str]:
    yield from _set_differences("source", saved, saved.sources, program.sources)
    if _in_step(saved.sources, program.sources):
        for was, now in zip(saved.sources, program.sources, strict=True):
            yield from _source_differences(was, now)
        yield from _bounded_differences(saved, program)
    if saved.name == ELEMENT_QUERY:
        yield from _element_differences(saved, program, allow_non_restored)
        return
    yield from _set_differences("stateful operator", saved, saved.operators, program.operators)
    if _in_step(saved.operators, program.operators):
        for before, after in zip(saved.operators, program.operators, strict=True):
            yield from _operator_differences(before, after)


def _element_differences(saved: QueryShape, program: QueryShape, allow_non_restored: bool) -> Iterator[str]:
    """State of operators on elements is found by their ids alone, wherever they stand."""
    if any(_WITH_LEVEL.search(was.kind) for was in saved.operators):
        yield (
            f"the state of query '{saved.name}' was written by an earlier development version and cannot be "
            f"read: {_NEW_START}"
        )
        return
    there = {operator.operator_hash: operator for operator in program.operators}
    for was in saved.operators:
        now = there.get(was.operator_hash)
        if now is not None:
            yield from _operator_differences(was, now)
        elif not allow_non_restored:
            place = "" if was.uid else " (or not at the same place, by which it is known without a uid)"
            yield (
                f"stateful operator {_shown(was)} is not in the program any more{place}: bring it back, "
                f"{_LEFT_BEHIND}, or {_NEW_START}"
            )


def _set_differences(
    what: str, query: QueryShape, saved: Sequence[_Part], program: Sequence[_Part]
) -> Iterator[str]:
    if _in_step(saved, program):
        return
    gone = [part for part in saved if not any(_same(part, other) for other in program)]
    new = [part for part in program if not any(_same(other, part) for other in saved)]
    for part in gone:
        yield (
            f"{what} {_shown(part)} of query '{query.name}' is not in the program any more: bring it back, "
            f"or {_NEW_START}"
        )
    for part in new:
        yield (
            f"{what} {_shown(part)} is new in query '{query.name}', whose state has nothing for it: give it "
            f"a query (a sink) of its own, or {_NEW_START}"
        )
    if not gone and not new:
        yield (
            f"the {what}s of query '{query.name}' were {_listed(saved)} and are {_listed(program)}: restore "
            f"their order and number, or {_NEW_START}"
        )


def _in_step(saved: Sequence[_Part], program: Sequence[_Part]) -> bool:
    """The same parts in the same order, as Spark, which numbers them, would take them."""
    return len(saved) == len(program) and all(
        _same(was, now) or not (was.uid and now.uid) for was, now in zip(saved, program, strict=True)
    )


def _same(saved: _Part, program: _Part) -> bool:
    return saved.operator_hash == program.operator_hash


def _source_differences(saved: SourceShape, program: SourceShape) -> Iterator[str]:
    if saved.kind != program.kind:
        yield (
            f"source {_shown(program)} was a {saved.kind} source and is a {program.kind} source, to which "
            f"its offsets say nothing: make it a {saved.kind} source again, or {_NEW_START}"
        )


def _bounded_differences(saved: QueryShape, program: QueryShape) -> Iterator[str]:
    """Windows over input that ends have one more source, from which the end is told."""
    was, now = (all(source.bounded for source in query.sources) for query in (saved, program))
    if was != now and any(operator.window for operator in saved.operators):
        ways = {True: "to an end", False: "for ever"}
        yield (
            f"query '{saved.name}' has windows and was read {ways[was]}, and is read {ways[now]}: read its "
            f"sources {ways[was]} again, or {_NEW_START}"
        )


def _operator_differences(saved: OperatorShape, program: OperatorShape) -> Iterator[str]:
    shown = f"stateful operator {_shown(program)}"
    if saved.kind != program.kind:
        kinds = f"was a {saved.kind} and is a {program.kind}"
        yield f"{shown} {kinds}: make it a {saved.kind} again, or {_NEW_START}"
        return
    parts = (
        ("was keyed by", "is keyed by", _texts(saved.key), _texts(program.key)),
        ("had the window", "has the window", saved.window or "none", program.window or "none"),
        ("kept", "keeps", _texts(saved.state), _texts(program.state)),
    )
    for was, now, before, after in parts:
        if before != after:
            yield f"{shown} {was} {before} and {now} {after}: change it back, or {_NEW_START}"
    if saved.key == program.key:
        yield from _schema_differences(f"the key of {shown}", saved.key_schema, program.key_schema)
    if saved.state == program.state:
        yield from _schema_differences(f"the state of {shown}", saved.value_schema, program.value_schema)


def _schema_differences(
    what: str, saved: Sequence[FieldShape], program: Sequence[FieldShape]
) -> Iterator[str]:
    if not saved or not program:
        return  # only Spark knows it
    fits = len(saved) == len(program) and all(
        was.name.lower() == now.name.lower() and (was.type == now.type or not was.type or not now.type)
        for was, now in zip(saved, program, strict=True)
    )
    if not fits:
        yield (
            f"{what} had the fields {_fields(saved)} and has {_fields(program)}: give it the former fields, "
            f"or {_NEW_START}"
        )


def _shown(part: SourceShape | OperatorShape) -> str:
    uid = f"uid '{part.uid}'" if part.uid else "no uid"
    return f"'{part.name}' ({uid}{', ' if part.origin else ''}{part.origin})"


def _listed(parts: Sequence[SourceShape] | Sequence[OperatorShape]) -> str:
    return ", ".join(f"'{part.uid or part.name}'" for part in parts) or "none"


def _texts(texts: Sequence[str]) -> str:
    return ", ".join(texts) or "nothing"


def _fields(fields: Sequence[FieldShape]) -> str:
    return ", ".join(f"{field.name} {field.type}".rstrip() for field in fields)
