"""Where everything lies below the staging directory on the shared file system.

Decides paths and names, and prepares the directories; never what is in the files.  Flink
counterpart: ``YarnApplicationFileUploader``'s application directory.

::

    <staging>/cache/<sha256>/<name>              content-addressed files, kept between submits
             /uploads/<random>                   uploads that are under way
             /applications/<deployment id>/      one application, or the group of applications that are
                                                 the masters of one cluster; deleted when all have ended
             /job-keys/<key>/<generation>        who holds a job key
             /checkpoints/<job id>/              state of a job; its retention decides when it goes
             /ha/<cluster id>/                   what ZooKeeper has pointers to; goes with the cluster
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from yarnflow.core.files import FileSystem
from yarnflow.errors import StorageDenied, StorageError

#: tag of every application of yarnflow
APPLICATION_TAG: Final = "yarnflow"
#: further tag of masters that another master has started
STANDBY_TAG: Final = f"{APPLICATION_TAG}-standby"
#: set in the containers of these masters
STANDBY_ENVIRONMENT: Final = "YARNFLOW_STANDBY"
#: names in an application directory; those of the first three are names in the containers, too
DEPLOYMENT_FILE: Final = "deployment.json"
SECRET_FILE: Final = "secret"
SUBMISSION_FILE: Final = "submission.json"
CONNECTION_FILE: Final = "connection.json"
RESULT_FILE: Final = "result.json"
#: how another master of the same cluster is submitted
APPLICATION_FILE: Final = "application.json"
#: beside the record of a job key's generation: what became of it
APPLICATION_SUFFIX: Final = ".application"
#: parent of skein's own directories, one per application, in the user's home
_SKEIN_DIRECTORY: Final = ".skein"

_GENERATION_DIGITS: Final = 19
_GENERATION: Final = re.compile(r"[0-9]{19}")
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.-]")
#: HDFS allows 255 bytes
_MAX_KEY_NAME: Final = 200


def deployment_tag(deployment_id: str) -> str:
    """The YARN tag that ties an application to its directory."""
    return f"{APPLICATION_TAG}-{deployment_id}"


def cluster_id_of(deployment_id: str) -> str:
    """Name of a highly available cluster in ZooKeeper, unless it was given one."""
    return deployment_tag(deployment_id)


def master_tag(master_id: str) -> str:
    """The YARN tag that only one submit of a standby has."""
    return f"{STANDBY_TAG}-{master_id}"


def job_tag(job_id: str) -> str:
    """The YARN tag that ties an application to its job."""
    return f"{APPLICATION_TAG}-job-{job_id}"


@dataclass(frozen=True, slots=True)
class StagingLayout:
    """Paths below one staging directory.

    Parameters
    ----------
    root : str
        Absolute path without scheme, e.g. ``/user/ann/.yarnflow``.
    """

    root: str

    @property
    def cache(self) -> str:
        """Content-addressed files."""
        return f"{self.root}/cache"

    @property
    def uploads(self) -> str:
        """Uploads on their way into the cache."""
        return f"{self.root}/uploads"

    @property
    def applications(self) -> str:
        """Parent of the application directories."""
        return f"{self.root}/applications"

    @property
    def job_keys(self) -> str:
        """Parent of the job keys' directories."""
        return f"{self.root}/job-keys"

    @property
    def checkpoints(self) -> str:
        """Parent of the jobs' checkpoint directories, unless jobs have one elsewhere."""
        return f"{self.root}/checkpoints"

    @property
    def latest_states(self) -> str:
        """Newest retained state of each job key, unless jobs have their checkpoints elsewhere."""
        return f"{self.checkpoints}/job-keys"

    @property
    def high_availability(self) -> str:
        """Parent of the clusters' directories for what ZooKeeper has pointers to."""
        return f"{self.root}/ha"

    def cached_file(self, sha256: str, name: str) -> str:
        """Path of a cached file with this content and name."""
        return f"{self.cache}/{sha256}/{name}"

    def application(self, deployment_id: str) -> str:
        return f"{self.applications}/{deployment_id}"

    def job_key(self, key: str) -> str:
        """Directory of a job key."""
        return f"{self.job_keys}/{key_name(key)}"

    def generation(self, key: str, generation: int) -> str:
        """Record of one holder of a job key."""
        return f"{self.job_key(key)}/{generation:0{_GENERATION_DIGITS}d}"

    def generation_application(self, key: str, generation: int) -> str:
        """What one holder of a job key was bound to."""
        return f"{self.generation(key, generation)}{APPLICATION_SUFFIX}"


def skein_directory(home: str, application_id: str) -> str:
    """Where skein keeps the files of one application, below the user's home directory."""
    return f"{home.rstrip('/')}/{_SKEIN_DIRECTORY}/{application_id}"


def generation_of(name: str) -> int | None:
    """Number of a generation's record from its file name, None for any other file."""
    return int(name) if _GENERATION.fullmatch(name) else None


def key_name(key: str) -> str:
    """A job key as the name of a directory: distinct keys have distinct names.

    What is not a letter, digit, ``_``, ``-`` or an inner ``.`` is written ``~`` and two hexadecimal
    digits per byte (a percent sign would be escaped anew on the way through WebHDFS); a name
    that would be too long is cut and ends with a hash.
    """
    parts = []
    for index, character in enumerate(key):
        if _PLAIN.fullmatch(character) and not (character == "." and index == 0):
            parts.append(character)
        else:
            parts += [f"~{byte:02x}" for byte in character.encode("utf-8", "surrogatepass")]
    name = "".join(parts)
    if len(name) <= _MAX_KEY_NAME:
        return name
    # "~~" cannot come from the escapes above
    return f"{name[:_MAX_KEY_NAME - 66]}~~{hashlib.sha256(name.encode()).hexdigest()}"


def prepare(fs: FileSystem, layout: StagingLayout, user: str) -> None:
    """Create the staging directory's own directories, so that nobody but ``user`` writes there.

    The cache is readable by all (YARN then localises its files once per node), the rest by the
    user only.  Idempotent.

    Raises
    ------
    StorageDenied
        The directory belongs to somebody else, others may write to it, or it cannot be created:
        who could plant files in the cache could run code as this user.
    StorageUnavailable
        The file system does not answer or is read-only.
    """
    hint = "set yarn.staging-directory to a directory of your own"
    found = fs.status(layout.root)
    if found is None:
        try:
            fs.make_directory(layout.root, permission=0o755)
        except StorageDenied as error:
            raise StorageDenied(f"{error}; {hint}") from error
        found = fs.status(layout.root)
    if found is None or not found.is_directory:
        raise StorageError(f"{fs.uri}{layout.root} is not a directory; {hint}")
    if found.owner and found.owner != user:
        raise StorageDenied(f"{fs.uri}{layout.root} belongs to {found.owner}, not to {user}; {hint}")
    if found.permission & 0o022:
        raise StorageDenied(
            f"others may write to {fs.uri}{layout.root} (mode {found.permission & 0o7777:04o}); "
            f"run: hdfs dfs -chmod go-w {layout.root}"
        )
    there = {status.path for status in fs.list(layout.root)}
    for path, permission in (
        (layout.cache, 0o755),
        (layout.uploads, 0o700),
        (layout.applications, 0o700),
        (layout.job_keys, 0o700),
        (layout.checkpoints, 0o700),
        (layout.high_availability, 0o700),
    ):
        if path not in there:
            fs.make_directory(path, permission=permission)
