"""A cluster each of whose masters has a clock of its own, with its drivers, that can be set.

libfaketime answers what processes ask the kernel.  Time that only runs (``CLOCK_MONOTONIC`` and the like) is
the machine's, as it is where somebody sets a machine's clock.  Sleeping and waiting are left to the machine:
libfaketime 0.9.10 refuses to sleep until a time of a clock that it does not fake, which is how Python sleeps,
and ends each wait until such a time at once, which is how a JVM waits: all its threads would spin.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import psutil

from integration.conftest import Started
from integration.faults.ha_cluster import HaCluster

_SLEEP = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left) {
    return syscall(SYS_clock_nanosleep, clock, flags, time, left) == 0 ? 0 : errno;
}

typedef int wait_until(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *time) {
    static wait_until *of_the_machine = NULL;
    if (of_the_machine == NULL)
        of_the_machine = (wait_until *)dlsym(dlopen("libc.so.6", RTLD_LAZY | RTLD_NOLOAD), __func__);
    return of_the_machine(condition, mutex, time);
}
"""


def _libraries(directory: Path) -> str:
    """Paths of the library that threads may use, and before it of the one that sleeps."""
    found = [*Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")]
    assert found, "libfaketime is missing (Debian: apt-get install faketime)"
    sleep = directory / "sleep.so"
    if not sleep.exists():
        command = ["cc", "-shared", "-fPIC", "-x", "c", "-o", str(sleep), "-"]
        subprocess.run(command, input=_SLEEP, text=True, check=True)
    return f"{sleep}:{found[0]}"


def environment(clock: Path) -> dict[str, str]:
    """Variables of processes whose clock is set by a file; a library of theirs is made beside it."""
    return {
        "LD_PRELOAD": _libraries(clock.parent),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        # the file is read again so often, in seconds
        "FAKETIME_CACHE_DURATION": "1",
    }


@dataclass
class ClockedCluster(HaCluster):
    """The cluster; for `started_cluster`."""

    def master_environment(self) -> dict[str, str]:
        """With the clock of the master that is started next."""
        clock = self._clock(len(self.masters))
        clock.write_text("+0\n")
        return {**self.environment(), **environment(clock)}

    def _clock(self, number: int) -> Path:
        return self.directory / f"clock-{number}"

    def master_of(self, process: psutil.Process) -> Started:
        """The master that a process belongs to."""
        owner = self.owner_of(process)
        return next(started for started in self.masters if started.process.pid == owner.pid)

    def set_clock(self, master: Started, seconds: int) -> None:
        """Set a master's clock to so many seconds after the machine's, and that of all its processes."""
        clock = self._clock(self.masters.index(master))
        new = clock.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        # nobody reads half of it
        new.rename(clock)
