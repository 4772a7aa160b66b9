"""The skein library, imported when it is first needed: gRPC makes it slow to import."""

from __future__ import annotations

import warnings
from typing import Any


def skein() -> Any:
    """The package ``skein``.

    Raises
    ------
    ModuleNotFoundError
        It is not installed.
    """
    with warnings.catch_warnings():
        # it still uses distutils
        warnings.simplefilter("ignore", DeprecationWarning)
        import skein as library
        import skein.exceptions
    return library
