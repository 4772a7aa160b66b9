"""Tests of hangs: the one test fails, its report shows what each thread does, and the others go on."""

from __future__ import annotations

import pytest

from tests.hangs import limit_s
from tests.patience import PATIENCE

pytest_plugins = ("pytester",)

HANGING = """
import ctypes, socket, threading
import pytest
from tests.patience import PATIENCE

def hang():
    ours, theirs = socket.socketpair()
    thread = threading.Thread(target=read, args=(ours, theirs), name="reader", daemon=True)
    thread.start()
    thread.join(100)

def read(ours, theirs):
    ours.recv(1)

@pytest.fixture
def at_begin():
    hang()

@pytest.fixture
def at_end():
    yield
    hang()

@pytest.fixture
def for_a_while():
    threading.Event().wait(PATIENCE.factor)

def test_before(): pass
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with the plugin, and with limits that are short."""
    # others take their time to load
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\naddopts = -p pytest_timeout -p xdist.plugin\n")
    pytester.makeconftest('pytest_plugins = ("tests.hangs", "short_limits")')
    pytester.makepyfile(
        short_limits=f"""
        from tests import hangs
        from tests.patience import PATIENCE
        PATIENCE.factor = {PATIENCE.factor}
        hangs._UNIT_TEST_S = 0.5
        hangs._BEGIN_S = hangs._END_S = 4.0
        hangs._GRACE_S = 1.0
        """
    )
    return pytester


@pytest.mark.parametrize(
    "source, outcome, when",
    [
        ("def test_hangs(): hang()", {"failed": 1}, "call"),
        ("def test_hangs(at_begin): pass", {"errors": 1}, "setup"),
        ("def test_hangs(at_end): pass", {"passed": 3, "errors": 1}, "teardown"),
    ],
    ids=["test", "begin", "end"],
)
def test_a_hang_fails_one_test_and_shows_all_threads(
    project: pytest.Pytester, source: str, outcome: dict[str, int], when: str
) -> None:
    project.makepyfile(f"{HANGING}\n{source}\ndef test_after(): pass")
    done = project.runpytest_subprocess()
    done.assert_outcomes(**{"passed": 2, **outcome})
    done.stdout.fnmatch_lines(
        [f"*Captured stdout {when}*", "*Stack of reader *", '*, in read', "    ours.recv(1)"]
    )
    done.stdout.fnmatch_lines(["*Failed: Timeout (>*"])


def test_fixtures_have_limits_of_their_own(project: pytest.Pytester) -> None:
    """Installing what a fixture needs takes longer than a test may."""
    project.makepyfile(f"{HANGING}\ndef test_waits(for_a_while): pass")
    project.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_main_thread_in_c_ends_its_worker_alone(project: pytest.Pytester) -> None:
    project.makepyfile(
        f"""{HANGING}
def test_hangs():
    libc, lock = ctypes.CDLL(None), ctypes.create_string_buffer(64)
    # goes on waiting behind a signal
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_lock(lock)

def test_after(): pass
def test_last(): pass
"""
    )
    done = project.runpytest_subprocess("-n", "2", "--dist", "loadscope")
    done.assert_outcomes(passed=3, failed=1)
    done.stdout.fnmatch_lines(["*worker 'gw?' crashed while running '*::test_hangs'*"])
    done.stderr.fnmatch_lines(["*most recent call first*", "*in test_hangs"])


@pytest.mark.parametrize(
    "marks, seconds", [("", 300), ("@pytest.mark.drill", 2400), ("@pytest.mark.timeout(7)", 7)]
)
def test_a_drill_may_take_longer_and_a_mark_says_how_long(
    pytester: pytest.Pytester, marks: str, seconds: float
) -> None:
    item = pytester.getitem(f"import pytest\n{marks}\ndef test_func(): pass")
    assert limit_s(item) == seconds
