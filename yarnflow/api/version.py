"""The release of PyFlink whose API this is."""

from typing import Final

__version__: Final = "2.3.0"
