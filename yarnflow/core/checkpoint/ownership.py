"""Who could have written state: whether owners and permissions leave nobody but the user of this process.

Decides; what a file system says of a file comes through :class:`Owners`.  Flink has no counterpart.
"""

from __future__ import annotations

import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

#: of directories and files that are their owner's alone
DIRECTORY_MODE: Final = 0o700
FILE_MODE: Final = 0o600
_OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH


@dataclass(frozen=True, slots=True)
class Access:
    """What a file system says of a file or directory."""

    owner: str
    #: permission bits, of directories with the sticky bit; with access lists the group's bits are their mask
    mode: int


class Owners(Protocol):
    """Port to owners and permissions of files."""

    def user(self, path: str) -> str:
        """The user of this process on the file system of a path; empty = permissions mean nothing there."""

    def access(self, path: str) -> Access:
        """Of a file or directory itself, not of what a link leads to."""

    def accesses(self, directory: str) -> Mapping[str, Access]:
        """Name → access of a directory's entries; links as of themselves."""


def writable_by_others(owners: Owners, trees: Mapping[str, Collection[str]]) -> str:
    """Why somebody else could have written some files.

    Parameters
    ----------
    owners : Owners
    trees : mapping of str to collection of str
        Directory (a URI) → paths of files, relative to it.  Those directories, all between them and the
        files, and the files must belong to the user; directories above them only must keep others from
        exchanging what is in them.

    Returns
    -------
    str
        A clause that names one place; empty = nobody else could.
    """
    for root, paths in trees.items():
        user = owners.user(root)
        if not user:
            return f"permissions mean nothing in {root}"
        found = (
            _exchangeable(owners, root)
            or _foreign(root, owners.access(root), user)
            or _foreign_below(owners, root, paths, user)
        )
        if found:
            return found
    return ""


def owned_by_another(owners: Owners, trees: Mapping[str, Collection[str]]) -> str:
    """Why some files, where only this cluster's jobs should write, are not all the user's.

    Parameters
    ----------
    owners : Owners
    trees : mapping of str to collection of str
        Directory (a URI) → paths of files, relative to it.

    Returns
    -------
    str
        A clause that names one place; empty = they are, or permissions mean nothing there.
    """
    for root, paths in trees.items():
        user = owners.user(root)
        if not user:
            continue
        found = _foreign(root, owners.access(root), user, modes=False)
        if found := found or _foreign_below(owners, root, paths, user, modes=False):
            return found
    return ""


def _exchangeable(owners: Owners, root: str) -> str:
    for directory in _above(root):
        mode = owners.access(directory).mode
        if mode & _OTHERS_WRITE and not mode & stat.S_ISVTX:
            return f"{directory}, above it, is writable by others ({_shown(mode)})"
    return ""


def _foreign_below(
    owners: Owners, root: str, paths: Collection[str], user: str, modes: bool = True
) -> str:
    names: dict[str, set[str]] = {}
    for path in paths:
        while path:
            parent, _, name = path.rpartition("/")
            names.setdefault(parent, set()).add(name)
            path = parent
    for parent, wanted in sorted(names.items()):
        directory = f"{root}/{parent}".rstrip("/")
        accesses = owners.accesses(directory)
        for name in sorted(wanted):
            access = accesses.get(name)
            if access is None:
                return f"{directory}/{name} is missing"
            if found := _foreign(f"{directory}/{name}", access, user, modes):
                return found
    return ""


def _foreign(path: str, access: Access, user: str, modes: bool = True) -> str:
    if access.owner != user:
        return f"{path} belongs to {access.owner}, not to {user}"
    if modes and access.mode & _OTHERS_WRITE:
        return f"{path} is writable by others ({_shown(access.mode)})"
    return ""


def _shown(mode: int) -> str:
    return stat.filemode(stat.S_IMODE(mode))[1:]


def _above(root: str) -> list[str]:
    """The directories that lead to one, from the first on."""
    scheme, _, path = root.partition(":")
    authority, path = "", path.rstrip("/")
    if path.startswith("//"):
        authority, _, path = path[2:].partition("/")
        authority = f"//{authority}"
    parts = [part for part in path.split("/") if part]
    return [f"{scheme}:{authority}/{'/'.join(parts[:count])}" for count in range(len(parts))]
