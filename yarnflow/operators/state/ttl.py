"""Time-to-live of state: the configuration users build, and the plain form tables work with.

Flink counterpart: ``StateTtlConfig``.  Expired entries are looked for at every commit, oldest first,
so of the clean-up strategies only whether the background may clean up at all makes a difference;
the others are kept for programs that name them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class TimeToLive:
    """What of a StateTtlConfig the tables need."""

    ttl_ms: int
    #: reading counts as an access too
    on_read: bool = False
    #: an expired entry that was not cleaned up yet may be read once more
    return_expired: bool = False
    #: look for expired entries at commits, not only where they are read
    clean_up: bool = True


class StateTtlConfig:
    """When state that is not used expires, and whether it can be seen after that.

    Made by ``StateTtlConfig.new_builder(Time.days(1)).…build()``, given to
    ``descriptor.enable_time_to_live``.
    """

    class UpdateType(Enum):
        """Which accesses start the time anew."""

        Disabled = 0
        OnCreateAndWrite = 1
        OnReadAndWrite = 2

    class StateVisibility(Enum):
        """Whether what has expired can still be read until it was cleaned up."""

        ReturnExpiredIfNotCleanedUp = 0
        NeverReturnExpired = 1

    class TtlTimeCharacteristic(Enum):
        """Which time counts; processing time is the only one there is."""

        ProcessingTime = 0

    def __init__(
        self,
        update_type: UpdateType,
        state_visibility: StateVisibility,
        ttl_time_characteristic: TtlTimeCharacteristic,
        ttl: Any,
        cleanup_strategies: CleanupStrategies,
    ) -> None:
        self._update_type = update_type
        self._state_visibility = state_visibility
        self._ttl_time_characteristic = ttl_time_characteristic
        self._ttl = ttl
        self._cleanup_strategies = cleanup_strategies

    @staticmethod
    def new_builder(ttl: Any) -> StateTtlConfig.Builder:
        """Begin a configuration; ``ttl`` is a Time, Duration or timedelta."""
        return StateTtlConfig.Builder(ttl)

    def get_update_type(self) -> UpdateType:
        """Which accesses start the time anew."""
        return self._update_type

    def get_state_visibility(self) -> StateVisibility:
        """Whether expired state can be read until it is removed."""
        return self._state_visibility

    def get_ttl(self) -> Any:
        """How long state lives, as it was given."""
        return self._ttl

    def get_ttl_time_characteristic(self) -> TtlTimeCharacteristic:
        """Always processing time."""
        return self._ttl_time_characteristic

    def is_enabled(self) -> bool:
        """Whether state expires at all."""
        return self._update_type is not StateTtlConfig.UpdateType.Disabled

    def get_cleanup_strategies(self) -> CleanupStrategies:
        """The clean-up strategies the program asked for."""
        return self._cleanup_strategies

    def __repr__(self) -> str:
        return (
            f"StateTtlConfig(ttl={self._ttl!r}, update_type={self._update_type.name}, "
            f"state_visibility={self._state_visibility.name})"
        )

    class CleanupStrategies:
        """What a program asked for about cleaning up."""

        class Strategies(Enum):
            """Names of the strategies."""

            FULL_STATE_SCAN_SNAPSHOT = 0
            INCREMENTAL_CLEANUP = 1
            ROCKSDB_COMPACTION_FILTER = 2

        class CleanupStrategy:
            """Base of the strategies' settings."""

        class EmptyCleanupStrategy(CleanupStrategy):
            """A strategy without settings."""

        class IncrementalCleanupStrategy(CleanupStrategy):
            """Some entries are looked at with each access."""

            def __init__(self, cleanup_size: int, run_cleanup_for_every_record: bool) -> None:
                self._cleanup_size = cleanup_size
                self._run_cleanup_for_every_record = run_cleanup_for_every_record

            def get_cleanup_size(self) -> int:
                return self._cleanup_size

            def run_cleanup_for_every_record(self) -> bool:
                return self._run_cleanup_for_every_record

        class RocksdbCompactFilterCleanupStrategy(CleanupStrategy):
            """Entries are dropped while RocksDB compacts its files."""

            def __init__(
                self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
            ) -> None:
                self._query_time_after_num_entries = query_time_after_num_entries
                self._periodic_compaction_time = periodic_compaction_time or timedelta(days=30)

            def get_query_time_after_num_entries(self) -> int:
                return self._query_time_after_num_entries

            def get_periodic_compaction_time(self) -> Any:
                return self._periodic_compaction_time

        EMPTY_STRATEGY: Final = EmptyCleanupStrategy()

        def __init__(
            self, strategies: dict[Strategies, CleanupStrategy], is_cleanup_in_background: bool
        ) -> None:
            self._strategies = strategies
            self._is_cleanup_in_background = is_cleanup_in_background

        def is_cleanup_in_background(self) -> bool:
            """Whether expired state is removed although nobody reads it."""
            return self._is_cleanup_in_background

        def in_full_snapshot(self) -> bool:
            """Whether the program asked for clean-up in full snapshots."""
            return self.Strategies.FULL_STATE_SCAN_SNAPSHOT in self._strategies

        def get_incremental_cleanup_strategy(self) -> Any:
            """The strategy asked for, the default one, or None."""
            default = self.IncrementalCleanupStrategy(5, False) if self._is_cleanup_in_background else None
            return self._strategies.get(self.Strategies.INCREMENTAL_CLEANUP, default)

        def get_rocksdb_compact_filter_cleanup_strategy(self) -> Any:
            """The strategy asked for, the default one, or None."""
            background = self._is_cleanup_in_background
            default = self.RocksdbCompactFilterCleanupStrategy(1000) if background else None
            return self._strategies.get(self.Strategies.ROCKSDB_COMPACTION_FILTER, default)

    class Builder:
        """Collects the settings of a StateTtlConfig."""

        def __init__(self, ttl: Any) -> None:
            self._ttl = ttl
            self._update_type = StateTtlConfig.UpdateType.OnCreateAndWrite
            self._state_visibility = StateTtlConfig.StateVisibility.NeverReturnExpired
            self._ttl_time_characteristic = StateTtlConfig.TtlTimeCharacteristic.ProcessingTime
            self._is_cleanup_in_background = True
            self._strategies: dict[Any, Any] = {}

        def set_update_type(self, update_type: StateTtlConfig.UpdateType) -> StateTtlConfig.Builder:
            """Say which accesses start the time anew; creation and writing by default."""
            self._update_type = update_type
            return self

        def update_ttl_on_create_and_write(self) -> StateTtlConfig.Builder:
            """Creation and writing start the time anew; the default."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnCreateAndWrite)

        def update_ttl_on_read_and_write(self) -> StateTtlConfig.Builder:
            """Reading starts the time anew, too."""
            return self.set_update_type(StateTtlConfig.UpdateType.OnReadAndWrite)

        def set_state_visibility(
            self, state_visibility: StateTtlConfig.StateVisibility
        ) -> StateTtlConfig.Builder:
            """Say whether expired state can be read until it is removed; it cannot by default."""
            self._state_visibility = state_visibility
            return self

        def return_expired_if_not_cleaned_up(self) -> StateTtlConfig.Builder:
            """Expired state can be read until it is removed."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp)

        def never_return_expired(self) -> StateTtlConfig.Builder:
            """Expired state cannot be read; the default."""
            return self.set_state_visibility(StateTtlConfig.StateVisibility.NeverReturnExpired)

        def set_ttl_time_characteristic(
            self, ttl_time_characteristic: StateTtlConfig.TtlTimeCharacteristic
        ) -> StateTtlConfig.Builder:
            """Say which time counts; there is only processing time."""
            self._ttl_time_characteristic = ttl_time_characteristic
            return self

        def use_processing_time(self) -> StateTtlConfig.Builder:
            """Processing time counts; the default, and the only time there is."""
            return self.set_ttl_time_characteristic(StateTtlConfig.TtlTimeCharacteristic.ProcessingTime)

        def cleanup_full_snapshot(self) -> StateTtlConfig.Builder:
            """Accepted; expired state is removed at every commit."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.FULL_STATE_SCAN_SNAPSHOT] = strategies.EMPTY_STRATEGY
            return self

        def cleanup_incrementally(
            self, cleanup_size: int, run_cleanup_for_every_record: bool
        ) -> StateTtlConfig.Builder:
            """Accepted; expired state is removed at every commit."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.INCREMENTAL_CLEANUP] = (
                strategies.IncrementalCleanupStrategy(cleanup_size, run_cleanup_for_every_record)
            )
            return self

        def cleanup_in_rocksdb_compact_filter(
            self, query_time_after_num_entries: int, periodic_compaction_time: Any = None
        ) -> StateTtlConfig.Builder:
            """Accepted; expired state is removed at every commit."""
            strategies = StateTtlConfig.CleanupStrategies
            self._strategies[strategies.Strategies.ROCKSDB_COMPACTION_FILTER] = (
                strategies.RocksdbCompactFilterCleanupStrategy(
                    query_time_after_num_entries, periodic_compaction_time
                )
            )
            return self

        def disable_cleanup_in_background(self) -> StateTtlConfig.Builder:
            """Remove expired state only when it is read."""
            self._is_cleanup_in_background = False
            return self

        def set_ttl(self, ttl: Any) -> StateTtlConfig.Builder:
            """Set how long state lives: a Time, Duration or timedelta."""
            self._ttl = ttl
            return self

        def build(self) -> StateTtlConfig:
            """The configuration."""
            return StateTtlConfig(
                self._update_type,
                self._state_visibility,
                self._ttl_time_characteristic,
                self._ttl,
                StateTtlConfig.CleanupStrategies(dict(self._strategies), self._is_cleanup_in_background),
            )


def time_to_live(config: StateTtlConfig | TimeToLive | None) -> TimeToLive | None:
    """The plain form of a configuration; None: state never expires.

    Raises
    ------
    ValueError
        The time is not positive, or no time at all.
    """
    if config is None or isinstance(config, TimeToLive):
        return config
    if not config.is_enabled():
        return None
    ttl_ms = duration_ms(config.get_ttl())
    if ttl_ms <= 0:
        raise ValueError(f"time-to-live of state must be positive, not {ttl_ms} ms")
    strategies = config.get_cleanup_strategies()
    return TimeToLive(
        ttl_ms,
        config.get_update_type() is StateTtlConfig.UpdateType.OnReadAndWrite,
        config.get_state_visibility() is StateTtlConfig.StateVisibility.ReturnExpiredIfNotCleanedUp,
        strategies.is_cleanup_in_background() or bool(strategies._strategies),
    )


def duration_ms(duration: Any) -> int:
    """Milliseconds of a ``Time``, ``Duration``, timedelta, or int of milliseconds.

    Raises
    ------
    ValueError
        It is none of these.
    """
    if isinstance(duration, timedelta):
        return duration // timedelta(milliseconds=1)
    for method in ("to_milliseconds", "to_millis"):
        convert = getattr(duration, method, None)
        if convert is not None:
            return int(convert())
    if isinstance(duration, int) and not isinstance(duration, bool):
        return duration
    raise ValueError(f"a time is to be given as Time, Duration or timedelta, not {type(duration).__name__}")
