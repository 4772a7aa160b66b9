"""How executors come to a driver."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ExecutorAttachment:
    """What an executor must be told to dial in to a driver; never secrets."""

    #: ``spark://CoarseGrainedScheduler@host:port``
    driver_url: str
    #: Spark's application id
    app_id: str
    java_options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
