"""A PyFlink program as its users write one, with files beside it and objects in its state, and its results.

Nothing in it is yarnflow's.  Its results do not depend on where micro-batches end, nor on the order in which
files are read: each element is numbered among those of its account, and a timer counts what came until then.
"""

from __future__ import annotations

import random
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from integration.hadoop import Hdfs

ACCOUNTS: Final = 5
#: as in the program
_TIMER_MS: Final = 1000
_DISORDER_MS: Final = 400
RATES: Final = {"EUR": 2, "USD": 3}
_STEP_MS: Final = 20

#: account, time, amount, currency
Transfer = tuple[str, int, int, str]

_PROGRAM: Final = '''
import argparse
import os
from dataclasses import dataclass

from pyflink.common import Duration, Encoder, Types, WatermarkStrategy
from pyflink.common.watermark_strategy import TimestampAssigner
from pyflink.datastream import KeyedProcessFunction, MapFunction, StreamExecutionEnvironment
from pyflink.datastream.connectors.file_system import FileSink, FileSource, StreamFormat
from pyflink.datastream.state import ListStateDescriptor, MapStateDescriptor, ValueStateDescriptor

TIMER_MS = 1000
END_MS = 10**12
DISORDER_MS = 400
HERE = os.path.dirname(os.path.abspath(__file__))
ANYTHING = Types.PICKLED_BYTE_ARRAY()


@dataclass
class Transfer:
    account: str
    at: int
    amount: int
    currency: str


@dataclass
class Account:
    transfers: int = 0


class Parse(MapFunction):
    def map(self, line):
        account, at, amount, currency = line.split(",")
        return Transfer(account, int(at), int(amount), currency)


class At(TimestampAssigner):
    def extract_timestamp(self, transfer, record_timestamp):
        return transfer.at


class Balances(KeyedProcessFunction):
    def open(self, runtime_context):
        self.account = runtime_context.get_state(ValueStateDescriptor("account", ANYTHING))
        self.transfers = runtime_context.get_list_state(ListStateDescriptor("transfers", ANYTHING))
        self.balances = runtime_context.get_map_state(MapStateDescriptor("balances", ANYTHING, ANYTHING))
        with open("rates/rates.csv") as lines:
            self.rates = {name: int(rate) for name, rate in (line.strip().split(",") for line in lines)}

    def process_element(self, transfer, ctx):
        # the workers have it by add_python_file()
        from money import Money

        account = self.account.value() or Account()
        account.transfers += 1
        self.account.update(account)
        self.transfers.add(transfer)
        money = Money(transfer.amount * self.rates[transfer.currency])
        if self.balances.contains(transfer.currency):
            money = self.balances.get(transfer.currency) + money
        self.balances.put(transfer.currency, money)
        timers = ctx.timer_service()
        timers.register_event_time_timer(transfer.at + TIMER_MS)
        timers.register_event_time_timer(END_MS)
        yield f"transfer,{transfer.account},{account.transfers}"

    def on_timer(self, timestamp, ctx):
        if timestamp == END_MS:
            total = sum(money.units for money in self.balances.values())
            yield f"balance,{ctx.get_current_key()},{total}"
        else:
            known = sum(1 for transfer in self.transfers if transfer.at <= timestamp)
            yield f"timer,{ctx.get_current_key()},{timestamp},{known}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--input")
    parser.add_argument("--output")
    arguments = parser.parse_args()
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    env.set_python_requirements(os.path.join(HERE, "requirements.txt"))
    env.add_python_file(os.path.join(HERE, "modules", "money.py"))
    env.add_python_archive(os.path.join(HERE, "rates.zip"), "rates")
    env.register_cached_file(os.path.join(HERE, "requirements.txt"), "requirements")
    lines = FileSource.for_record_stream_format(StreamFormat.text_line_format(), arguments.input)
    lines = lines.monitor_continuously(Duration.of_seconds(1)).build()
    strategy = WatermarkStrategy.for_bounded_out_of_orderness(Duration.of_millis(DISORDER_MS))
    transfers = (
        env.from_source(lines, WatermarkStrategy.no_watermarks(), "transfers")
        .map(Parse())
        .assign_timestamps_and_watermarks(strategy.with_timestamp_assigner(At()))
    )
    balances = transfers.key_by(lambda transfer: transfer.account).process(Balances()).uid("balances")
    sink = FileSink.for_row_format(arguments.output, Encoder.simple_string_encoder()).build()
    balances.map(str, Types.STRING()).sink_to(sink)
    env.execute("accounts")


if __name__ == "__main__":
    main()
'''

_MODULE: Final = """
class Money:
    def __init__(self, units):
        self.units = units

    def __add__(self, other):
        return Money(self.units + other.units)
"""


@dataclass(frozen=True)
class Accounts:
    """The program, its input in files of the same length, and its results.

    Parameters
    ----------
    directory : Path
        Of the program and what it needs.
    hdfs : Hdfs
        Where its input and output are.
    root : str
        Directory there; absolute.
    """

    directory: Path
    hdfs: Hdfs
    root: str
    files: int = 6
    transfers_per_file: int = 50

    @property
    def program(self) -> Path:
        return self.directory / "accounts.py"

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the program."""
        return "--input", f"{self.root}/in", "--output", f"{self.root}/out"

    def write_program(self) -> None:
        """Write the program and the files beside it."""
        (self.directory / "modules").mkdir()
        (self.directory / "modules" / "money.py").write_text(_MODULE)
        (self.directory / "requirements.txt").write_text("pyarrow>=10\n")
        with zipfile.ZipFile(self.directory / "rates.zip", "w") as archive:
            archive.writestr("rates.csv", "".join(f"{name},{rate}\n" for name, rate in RATES.items()))
        text = _PROGRAM.replace("{", "{")
        self.program.write_text(text)

    def put_input(self, numbers: Iterable[int]) -> None:
        """Give the program these of its files."""
        for number in numbers:
            lines = "".join(f"{','.join(map(str, transfer))}\n" for transfer in self._transfers(number))
            # in one step: a file that is watched must be whole
            self.hdfs.put(f"{self.root}/.{number}", lines.encode())
            self.hdfs.make_folder(f"{self.root}/in")
            self.hdfs.rename(f"{self.root}/.{number}", f"{self.root}/in/{number}.csv")

    def results(self) -> Counter[str]:
        """Lines that the program wrote."""
        out = f"{self.root}/out"
        found: Counter[str] = Counter()
        for name in self.hdfs.list(out) if self.hdfs.exists(out) else []:
            if name.startswith("part-"):
                found.update(self.hdfs.read(f"{out}/{name}").decode().splitlines())
        return found

    def transfers_done(self) -> int:
        """How many transfers the results are of so far."""
        return sum(line.startswith("transfer,") for line in self.results().elements())

    def expected(self) -> Counter[str]:
        """Lines of a run that was drained at its end."""
        found: Counter[str] = Counter()
        by_account: dict[str, list[Transfer]] = defaultdict(list)
        for number in range(self.files):
            for transfer in self._transfers(number):
                by_account[transfer[0]].append(transfer)
        for account, transfers in by_account.items():
            found.update(f"transfer,{account},{number + 1}" for number in range(len(transfers)))
            for due_ms in {at + _TIMER_MS for _, at, _, _ in transfers}:
                found[f"timer,{account},{due_ms},{sum(at <= due_ms for _, at, _, _ in transfers)}"] += 1
            total = sum(amount * RATES[currency] for _, _, amount, currency in transfers)
            found[f"balance,{account},{total}"] += 1
        return found

    def _transfers(self, number: int) -> list[Transfer]:
        """Of one file."""
        chosen = random.Random(number)
        first = number * self.transfers_per_file
        return [
            (
                f"account-{chosen.randrange(ACCOUNTS)}",
                n * _STEP_MS + chosen.randrange(_DISORDER_MS),
                n,
                chosen.choice(sorted(RATES)),
            )
            for n in range(first, first + self.transfers_per_file)
        ]
