"""Looks at the cluster now and then, and tells the log and a webhook what the rules say.

What an alert is, is decided by :mod:`yarnflow.core.monitoring.alerts`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from yarnflow.config.configuration import Configuration
from yarnflow.config.options import metrics as metric_options
from yarnflow.core.messages import JobDetails
from yarnflow.core.monitoring.alerts import (
    AlertBook,
    AlertSettings,
    JobObservation,
    Observation,
    Tell,
)
from yarnflow.core.monitoring.job_metrics import checkpoint_age_ms
from yarnflow.core.ports import Clock
from yarnflow.core.states import JobStatus
from yarnflow.errors import InvalidOption, JobNotFound
from yarnflow.metrics.registry import ClusterKnowledge, MetricRegistry
from yarnflow.metrics.webhook import Webhook, is_url

logger = logging.getLogger(__name__)


class Alerting:
    """Of one leadership; used by one thread.

    Parameters
    ----------
    settings : AlertSettings
    cluster : ClusterKnowledge
    registry : MetricRegistry
    clock : Clock
    cluster_id : str
    send : callable
        Takes what a webhook gets.
    """

    def __init__(
        self,
        settings: AlertSettings,
        cluster: ClusterKnowledge,
        registry: MetricRegistry,
        clock: Clock,
        cluster_id: str,
        send: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self._cluster = cluster
        self._registry = registry
        self._clock = clock
        self._cluster_id = cluster_id
        self._send = send
        self._book = AlertBook(settings)
        #: of jobs that are not over, for what is said of their end
        self._names: dict[str, str] = {}

    def look(self) -> None:
        """Look, and tell what is new."""
        live = [d for d in self._cluster.jobs() if not d.overview.status.globally_terminal]
        now_ms = self._clock.now_ms()
        seen = Observation(
            now_ms,
            self._cluster.cluster_overview().task_managers,
            tuple(self._observed(details, now_ms) for details in live),
        )
        self._names |= {job.job_id: job.name for job in seen.jobs}
        self._book, tells = self._book.observe(seen)
        for tell in tells:
            self._tell(tell)
        alive = {job.job_id for job in seen.jobs}
        self._names = {key: name for key, name in self._names.items() if key in alive}

    def _observed(self, details: JobDetails, now_ms: int) -> JobObservation:
        head = details.overview
        try:
            checkpoints = self._cluster.job_checkpoints(head.job_id)
            # what runs as one batch, or as a script that starts no query, has none
            periodic = bool(details.queries) or head.status is not JobStatus.RUNNING
            age_ms = checkpoint_age_ms(details, checkpoints, now_ms)
        except JobNotFound:  # it has just ended
            periodic, age_ms = False, 0
        return JobObservation(
            job_id=head.job_id,
            name=head.name,
            checkpointing=periodic,
            checkpoint_age_ms=age_ms,
            restarts=details.restarts,
            pending_records=self._registry.pending_records(head.job_id),
        )

    def _tell(self, tell: Tell) -> None:
        name = self._names.get(tell.subject, "")
        of = f"job {name} ({tell.subject})" if tell.subject else "the cluster"
        if tell.firing:
            logger.warning("Alert %s of %s: %s.", tell.rule.value, of, tell.text)
        else:
            logger.info("Alert %s of %s is over (%s).", tell.rule.value, of, tell.text)
        self._send(
            {
                "alert": tell.rule.value,
                "state": "firing" if tell.firing else "resolved",
                "cluster": self._cluster_id,
                "job_id": tell.subject,
                "job_name": name,
                "text": tell.text,
                "at": tell.at_ms,
                "since": tell.since_ms,
            }
        )


def alert_settings(configuration: Configuration) -> AlertSettings:
    """The limits: ``alerts.*``."""
    get = configuration.get
    return AlertSettings(
        checkpoint_max_age_ms=get(metric_options.ALERT_CHECKPOINT_MAX_AGE_MS),
        restarts=get(metric_options.ALERT_RESTARTS),
        restarts_window_ms=get(metric_options.ALERT_RESTARTS_WINDOW_MS),
        lag_window_ms=get(metric_options.ALERT_LAG_WINDOW_MS),
        lag_min_records=get(metric_options.ALERT_LAG_RECORDS),
        no_task_managers_ms=get(metric_options.ALERT_NO_TASK_MANAGERS_MS),
    )


def webhook_of(configuration: Configuration) -> Webhook | None:
    """Where alerts are posted to; None = nowhere.

    Raises
    ------
    InvalidOption
        ``alerts.webhook.url`` is no URL.
    """
    get = configuration.get
    url = get(metric_options.ALERT_WEBHOOK)
    if not url:
        return None
    if not is_url(url):
        raise InvalidOption(f"{metric_options.ALERT_WEBHOOK.key} is no URL; expected http://… or https://…")
    return Webhook(
        url, get(metric_options.ALERT_WEBHOOK_TIMEOUT_MS), get(metric_options.ALERT_WEBHOOK_ATTEMPTS)
    )
