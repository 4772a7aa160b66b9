"""Which fields of its record a function reads, by its bytecode.

A function that reads its record by attributes alone, like ``lambda bid: bid.price * 2``, need not be given
the other fields, so nobody has to parse and move them.  Whatever is not certain counts as all of them.
Flink counterpart: ``SupportsProjectionPushDown``, which looks at SQL alone.
"""

from __future__ import annotations

import dis
import types
from typing import Any, Final

#: with one of these a function may see a record without naming it
_SEE_VARIABLES: Final = frozenset(["locals", "vars", "eval", "exec", "dir", "_getframe", "currentframe"])
_LOADS: Final = frozenset(["LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW"])


def fields_read(function: Any) -> tuple[str, ...] | None:
    """Names of the attributes that a function reads of its first argument, sorted.

    Parameters
    ----------
    function : callable
        Whatever the user gave.

    Returns
    -------
    tuple of str or None
        None = it may look at all of it.
    """
    if not isinstance(function, types.FunctionType) or hasattr(function, "__wrapped__"):
        return None
    code = function.__code__
    if not code.co_argcount or _SEE_VARIABLES & {*code.co_names, *_inner_names(code)}:
        return None
    record = code.co_varnames[0]
    # a function inside this one sees it
    if record in code.co_cellvars:
        return None
    found: set[str] = set()
    instructions = [one for one in dis.get_instructions(code) if one.opname not in ("CACHE", "EXTENDED_ARG")]
    following: list[dis.Instruction | None] = [*instructions[1:], None]
    for instruction, then in zip(instructions, following, strict=True):
        if not _names(instruction, record):
            continue
        if instruction.opname not in _LOADS or then is None or not _is_read(then) or then.is_jump_target:
            return None
        found.add(then.argval)
    return tuple(sorted(found))


def _names(instruction: dis.Instruction, variable: str) -> bool:
    value = instruction.argval
    if "FAST" not in instruction.opname:
        return False
    # newer Pythons load two variables by one instruction
    return variable in value if isinstance(value, tuple) else bool(value == variable)


def _is_read(instruction: dis.Instruction) -> bool:
    """Whether it takes an attribute, and not a method: from Python 3.12 on one bit tells."""
    if instruction.opname != "LOAD_ATTR":
        return False
    return "LOAD_METHOD" in dis.opmap or not (instruction.arg or 0) & 1


def _inner_names(code: types.CodeType) -> set[str]:
    inner = [constant for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return {name for one in inner for name in (*one.co_names, *_inner_names(one))}
