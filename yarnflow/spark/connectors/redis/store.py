"""Which micro-batch Redis has of each sink, kept in Redis itself.  The only importer of redis.

A hash for each sink has the attempt of the job that may write and the newest batch it has written.  It
changes in the script that runs the batch's commands (see :mod:`yarnflow.spark.connectors.redis.script`), so
that batch and note are there together or not at all, and an attempt that was replaced writes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

import redis
import redis.exceptions

from yarnflow.config.secrets import masked_text
from yarnflow.errors import DatabaseError, ServerError, ServerUnavailable, SinkTaken
from yarnflow.graph.connectors.redis import RedisServer
from yarnflow.operators.databases.tokens import (
    NO_BATCH,
    UNKNOWN_ROWS,
    BatchToken,
    RunToken,
    StoredBatch,
    is_written,
    replaced,
    takes_over,
)
from yarnflow.spark.connectors.redis.script import FAILED, FIELDS, SCRIPT, Outcome, packed

_KEY: Final = "yarnflow:batches:"
#: how often a note that others change as well is looked at
_LOOKS: Final = 5
#: errors of connections that stay
_REFUSED: Final = (
    redis.exceptions.AuthenticationError,
    redis.exceptions.AuthorizationError,
    redis.exceptions.AuthenticationWrongNumberOfArgsError,
)
#: no answer
_AWAY: Final = (redis.exceptions.ConnectionError, redis.exceptions.TimeoutError)
#: answers that pass by themselves; the client has classes for some
_PASSING: Final = (
    redis.exceptions.OutOfMemoryError,
    redis.exceptions.ReadOnlyError,
    redis.exceptions.MasterDownError,
)
#: and no classes for others, or does not see them behind what older servers say of the script
_PASSING_CODE: Final = re.compile(r"\b(?:BUSY|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY)\b")


@dataclass(frozen=True, slots=True)
class _Note:
    """A sink's hash."""

    #: of each field; empty = there is none
    texts: tuple[bytes, ...]
    #: None = it is gone, or there was none yet
    stored: StoredBatch | None


class RedisStore:
    """The notes of all sinks of one server.  Can be pickled.

    Parameters
    ----------
    server : RedisServer
    """

    def __init__(self, server: RedisServer) -> None:
        self._server = server

    def claim(self, token: BatchToken, noted: bool = False) -> StoredBatch:
        """Make the token's run the one that writes the sink.

        Parameters
        ----------
        noted : bool
            An earlier attempt has claimed it, so there must be a note.

        Raises
        ------
        SinkTaken
            A later run of the job has claimed it.
        ServerError
            There are later batches than the token's, or one is there only in part; or the note is gone; or
            Redis refuses.
        """
        with self._client() as client:
            for _ in range(_LOOKS):
                note = self._read(client, token)
                stored = note.stored
                if stored is None and noted:
                    raise self._gone(token)
                if stored is not None:
                    if token.batch_id != NO_BATCH:
                        is_written(token, stored, _to_write_again(token))
                    if not takes_over(token, stored, _to_take_over(token)):
                        return stored
                before = (NO_BATCH, 0) if stored is None else (stored.batch_id, stored.written_rows)
                becomes = StoredBatch(token.run, *before)
                if self._run(client, token, note, becomes, ()):
                    return becomes
            raise self._changed(token)

    def write(self, token: BatchToken, commands: Sequence[Sequence[bytes]]) -> int:
        """Run a batch's commands, unless they were run before.

        Returns
        -------
        int
            Commands that were run before; -1 = none were.

        Raises
        ------
        SinkTaken
            Another run has claimed the sink.
        ServerError
            Redis refuses a command.
        """
        with self._client() as client:
            for _ in range(_LOOKS):
                note = self._read(client, token)
                stored = note.stored
                if stored is None:
                    raise self._gone(token)
                if stored.run != token.run:
                    raise replaced(token, stored, _to_take_over(token))
                if is_written(token, stored, _to_write_again(token)):
                    return stored.written_rows
                becomes = StoredBatch(token.run, token.batch_id, len(commands))
                if self._run(client, token, note, becomes, commands):
                    return -1
            raise self._changed(token)

    def _run(
        self,
        client: Any,
        token: BatchToken,
        note: _Note,
        becomes: StoredBatch,
        commands: Sequence[Sequence[bytes]],
    ) -> bool:
        """Whether the note was still the one that was read, and became another with these commands."""
        outcome, *why = client.execute_command(
            "EVAL",
            SCRIPT,
            1,
            _key(token),
            *note.texts,
            *_values(becomes),
            f"batch {token.batch_id}",
            packed(commands),
        )
        match Outcome(outcome):
            case Outcome.DONE:
                return True
            case Outcome.CHANGED:
                return False
            case Outcome.REFUSED:
                raise ServerError(f"{self._server.where}: {_text(why[0])}; nothing of the batch was run")
            case Outcome.FAILED:
                raise self._in_part(token, _text(why[0]))

    def _read(self, client: Any, token: BatchToken) -> _Note:
        texts = tuple(text or b"" for text in client.hmget(_key(token), *FIELDS, FAILED))
        job_id, epoch, attempt, batch_id, written_rows, failed = map(_text, texts)
        if failed:
            raise self._in_part(token, failed)
        if not batch_id:
            return _Note(texts, None)
        # somebody may have taken the owner out, or have set no more than the batch
        run = RunToken(job_id, int(epoch or 0), int(attempt or 0))
        return _Note(texts, StoredBatch(run, int(batch_id), int(written_rows or UNKNOWN_ROWS)))

    def _in_part(self, token: BatchToken, why: str) -> ServerError:
        """Redis goes on behind a command that fails: nobody may take the batch for written."""
        return ServerError(
            f"{self._server.where}: {why}; the other commands of the batch were run, so set right what is "
            f"wrong and HDEL {_key(token)} {FAILED} to go on behind it"
        )

    def _gone(self, token: BatchToken) -> ServerError:
        """A new note would say that nothing is written, and the batch might come twice."""
        key, batch_id = _key(token), max(token.batch_id, 0)
        return ServerError(
            f"{self._server.where}: the key {key}, which tells what the sink has written, is gone (deleted, "
            f"evicted, or the server has lost it); see whether batch {batch_id} is there, then HSET {key} "
            f"batch_id {batch_id} if it is, and {batch_id - 1} if it is not"
        )

    def _changed(self, token: BatchToken) -> ServerError:
        return ServerError(f"{self._server.where}: the key {_key(token)} is always changed by others")

    @contextmanager
    def _client(self) -> Iterator[Any]:
        server = self._server
        client = redis.Redis(
            host=server.host,
            port=server.port,
            db=server.database,
            username=server.user or None,
            password=server.password or None,
            socket_timeout=server.timeout_ms / 1000,
            socket_connect_timeout=server.timeout_ms / 1000,
            ssl=server.tls,
            # a server before Redis 6 speaks no other
            protocol=2,
            # whoever calls tries again, and asks first what has come through
            retry=None,
        )
        try:
            yield client
        except (SinkTaken, ServerError):
            raise
        except DatabaseError as error:
            raise ServerError(f"{server.where}: {error}") from None
        except redis.exceptions.RedisError as error:
            raise self._told(error) from None
        finally:
            with suppress(Exception):
                client.close()

    def _told(self, error: Exception) -> ServerError:
        said = masked_text(_words(error), [self._server.password] if self._server.password else [])
        if isinstance(error, _REFUSED):
            who = f"user {self._server.user}" if self._server.user else "the password"
            return ServerError(f"{self._server.where} refuses {who}: {said}")
        if isinstance(error, _AWAY):
            return ServerUnavailable(f"{self._server.where}: {said}; see whether it runs")
        if isinstance(error, _PASSING) or _PASSING_CODE.search(said):
            return ServerUnavailable(f"{self._server.where}: {said}")
        return ServerError(f"{self._server.where}: {said}")


def _key(token: BatchToken) -> str:
    return f"{_KEY}{token.sink}"


def _to_write_again(token: BatchToken) -> str:
    return f"HSET {_key(token)} batch_id {token.batch_id - 1}"


def _to_take_over(token: BatchToken) -> str:
    return f"HDEL {_key(token)} job_id"


def _values(stored: StoredBatch) -> tuple[str | int, ...]:
    """In the order of the fields."""
    run = stored.run
    return run.job_id, run.epoch, run.attempt, stored.batch_id, stored.written_rows


def _text(found: bytes) -> str:
    """For people: a key need not be text."""
    return " ".join(found.decode(errors="replace").split())


def _words(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
