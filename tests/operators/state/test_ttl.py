"""The configuration of time-to-live, and tables under it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from yarnflow.operators.state.keyed import KeyedState
from yarnflow.operators.state.kinds import StateKind
from yarnflow.operators.state.store import GroupStore
from yarnflow.operators.state.ttl import StateTtlConfig, TimeToLive, duration_ms, time_to_live


class PyFlinkTime:
    def to_milliseconds(self) -> int:
        return 5000


@pytest.mark.parametrize("duration, ms", [(timedelta(seconds=2), 2000), (PyFlinkTime(), 5000), (7, 7)])
def test_durations(duration: Any, ms: int) -> None:
    assert duration_ms(duration) == ms


@pytest.mark.parametrize("wrong", ["5 s", None, True, 1.5])
def test_what_is_no_duration_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="to be given as Time, Duration or timedelta"):
        duration_ms(wrong)


def test_a_configuration_becomes_what_tables_need() -> None:
    builder = StateTtlConfig.new_builder(timedelta(seconds=1))
    assert time_to_live(builder.build()) == TimeToLive(1000)
    builder.update_ttl_on_read_and_write().return_expired_if_not_cleaned_up()
    builder.disable_cleanup_in_background()
    assert time_to_live(builder.build()) == TimeToLive(1000, True, True, False)
    builder.cleanup_incrementally(10, True)
    assert time_to_live(builder.build()) == TimeToLive(1000, True, True, True)
    builder.set_update_type(StateTtlConfig.UpdateType.Disabled)
    assert time_to_live(builder.build()) is None
    with pytest.raises(ValueError, match="must be positive, not 0 ms"):
        time_to_live(StateTtlConfig.new_builder(0).build())


def test_the_strategies_asked_for_are_told() -> None:
    builder = StateTtlConfig.new_builder(1)
    default = builder.build().get_cleanup_strategies()
    assert default.get_incremental_cleanup_strategy().get_cleanup_size() == 5
    assert not default.in_full_snapshot()
    builder.cleanup_full_snapshot().cleanup_in_rocksdb_compact_filter(50)
    strategies = builder.build().get_cleanup_strategies()
    assert strategies.in_full_snapshot()
    rocksdb = strategies.get_rocksdb_compact_filter_cleanup_strategy()
    assert rocksdb.get_query_time_after_num_entries() == 50
    assert rocksdb.get_periodic_compaction_time() == timedelta(days=30)


def test_elements_and_entries_expire_one_by_one() -> None:
    state = KeyedState("op")
    state.bind(GroupStore())
    elements = state.table("list", StateKind.LIST, TimeToLive(100))
    entries = state.table("map", StateKind.MAP, TimeToLive(100))
    for time in (0, 60, 120):
        state.set_processing_time(time)
        elements.append("k", time)
        entries.put_entry("k", time, time)
    assert elements.get("k") == [60, 120]
    assert entries.get("k") == {60: 60, 120: 120} and entries.get_entry("k", 0) is None
    state.set_processing_time(220)
    assert state.clean_up() == 2 and not elements.contains("k") and not entries.contains("k")


def test_without_background_only_reading_cleans_up() -> None:
    state = KeyedState("op")
    state.bind(GroupStore())
    table = state.table("v", StateKind.VALUE, TimeToLive(100, clean_up=False))
    table.put("k", 1)
    state.set_processing_time(100)
    assert state.clean_up() == 0 and list(table.slots()) == [("k", None)]
    assert table.get("k") is None and list(table.slots()) == []
