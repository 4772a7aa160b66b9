"""Where in the user's program a call was made."""

from __future__ import annotations

import os
import sys
from typing import Any


def call_origin() -> str:
    """``file:line`` of the innermost frame outside the package; file name only, as messages show it."""
    frame = sys._getframe(1)
    while frame.f_back is not None and _is_ours(frame.f_globals.get("__name__", "")):
        frame = frame.f_back
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def definition_origin(function: Any, default: str) -> str:
    """``file:line`` where a function was defined; ``default`` when it does not say."""
    code = getattr(function, "__code__", None)
    if code is None or _is_ours(getattr(function, "__module__", None) or ""):
        return default
    return f"{os.path.basename(code.co_filename)}:{code.co_firstlineno}"


def _is_ours(module: str) -> bool:
    return module == "yarnflow" or module.startswith("yarnflow.")
