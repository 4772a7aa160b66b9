"""Numbers and names PyFlink has as constants."""

from __future__ import annotations

from typing import Final

from yarnflow.operators.elements import MAX_WATERMARK_MS, MIN_WATERMARK_MS

MAX_LONG_VALUE: Final = MAX_WATERMARK_MS
MIN_LONG_VALUE: Final = MIN_WATERMARK_MS
DEFAULT_OUTPUT_TAG: Final = ""
