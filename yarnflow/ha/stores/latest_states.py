"""The newest retained state of each job key, in small files beside the checkpoints."""

from __future__ import annotations

import hashlib
import logging
import re
from typing import Final

from yarnflow.core.files import FileSystems
from yarnflow.core.ha.ports import LatestState
from yarnflow.core.ids import JobId
from yarnflow.core.json_codec import from_json, to_json
from yarnflow.errors import FileMissing, RpcProtocolError

logger = logging.getLogger(__name__)

_READABLE: Final = 80


class FileLatestStates:
    """Implements :class:`yarnflow.core.ha.ports.LatestStates`.

    Parameters
    ----------
    fs_of : callable
        Opens the file system of a URI.
    root : str
        ``execution.checkpointing.dir`` (a URI).
    """

    def __init__(self, fs_of: FileSystems, root: str) -> None:
        self._fs_of = fs_of
        self._directory = f"{root.rstrip('/')}/job-keys"

    def read(self, job_key: str) -> LatestState | None:
        """None when nothing is retained, or the file cannot be understood."""
        fs, path = self._fs_of(self._uri(job_key))
        try:
            return from_json(LatestState, fs.read(path).decode())
        except FileMissing:
            return None
        except (RpcProtocolError, UnicodeDecodeError) as error:
            logger.error("%s cannot be understood and is passed over: %s", path, error)
            return None

    def write(self, state: LatestState) -> None:
        """Replace what was known of the key."""
        fs, path = self._fs_of(self._uri(state.job_key))
        fs.make_directory(path.rpartition("/")[0])
        fs.write(path, to_json(state).encode())

    def remove(self, job_key: str, job_id: JobId) -> None:
        """Forget it, if it is of this job."""
        known = self.read(job_key)
        if known is not None and known.job_id == job_id:
            fs, path = self._fs_of(self._uri(job_key))
            fs.delete(path)

    def _uri(self, job_key: str) -> str:
        # distinct keys have distinct names, and people recognise theirs
        readable = re.sub(r"[^A-Za-z0-9_-]", "_", job_key)[:_READABLE]
        return f"{self._directory}/{readable}-{hashlib.sha256(job_key.encode()).hexdigest()[:12]}.json"
