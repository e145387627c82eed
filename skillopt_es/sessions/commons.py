"""
What several runs share: calls and tokens a minute, and a budget, for each endpoint, in a SQLite file that all use.

A file, and no service: nobody has to be alive for it, and whoever is killed takes only calls of their own along. What
they held stays set aside, and is spent at its worst once nobody writes their run any more: it may have been paid for.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

from attrs import field, frozen

from skillopt_es.config import RunConfig
from skillopt_es.engine.budget import Amount, Caps, Reached, used_words
from skillopt_es.events.faults import sqlite_fault
from skillopt_es.events.values import Role
from skillopt_es.runs.folders import is_written

VARIABLE = "SKILLOPT_ES_LIMITS"
"""The environment variable that names the file: a sweep sets it for its runs."""

ADDRESS = "limits.json"
"""What the file in the variable is called where it says at which counter (`counter.py`) the limits are asked for."""

_TABLES = """
create table if not exists limits (
  endpoint text primary key, requests_per_minute integer, tokens_per_minute integer,
  max_calls integer, max_tokens integer, max_cost text
);
create table if not exists buckets (endpoint text, kind text, level real, at real, primary key (endpoint, kind));
create table if not exists spent (endpoint text primary key, calls integer, tokens integer, cost text);
create table if not exists held (
  id integer primary key, endpoint text, folder text, calls integer, tokens integer, cost text, flies integer default 1
);
"""
_PATIENCE = 30.0  # seconds for others who write; each of them takes less than a millisecond
_BURST = 0.1  # the part of a minute's allowance that may be used at once
_PLACES = Decimal("0.000000001")


@frozen(kw_only=True)
class Limits:
    """What all runs together may do at one endpoint; None: no limit."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None

    @property
    def caps(self) -> Caps:
        """The budget in it."""
        cost = None if self.max_cost is None else Decimal(str(self.max_cost))
        return Caps(cost=cost, tokens=self.max_tokens, calls=self.max_calls)


def endpoint_of(config: RunConfig, role: Role) -> str:
    """What a role's calls share a limit by: the host and port of its address, or its backend where it has none."""
    own = config.role(role)
    return urlsplit(own.base_url).netloc.rpartition("@")[2] or own.backend


@frozen
class Granted:
    """So much is set aside under this number; the call may be sent after so many seconds."""

    number: int
    wait: float


@frozen
class Full:
    """Others hold what is left: it may be free again once they have settled."""


Grant = Granted | Full | Reached


@frozen(kw_only=True)
class _Row:
    """One endpoint's limits as they are now, and what is spent and held."""

    limits: Limits = field(factory=Limits)
    spent: Amount = field(factory=Amount)
    held: Amount = field(factory=Amount)


class Commons:
    """One run's hold on the file; its calls are those of the run in `folder`."""

    def __init__(
        self, path: Path, folder: Path, clock: Callable[[], float] = time.monotonic, *, begins: bool = True
    ) -> None:
        """Where the run `begins`, what was left in flight before is spent; raises LogError for a bad file."""
        self._path, self._folder, self._clock = path, str(folder.resolve()), clock
        try:
            self._base = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None)
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = normal")
            self._base.executescript(_TABLES)
        except sqlite3.Error as error:
            raise sqlite_fault(error, path) from error
        if begins:
            self.over()

    def over(self) -> None:
        """No process of this run is at work: what one has left in flight is spent, at its worst."""
        with self._alone():
            self._bury([self._folder])

    def close(self) -> None:
        """Lets go of the file."""
        self._base.close()

    def set_limits(self, limits: Mapping[str, Limits]) -> None:
        """What holds from now on; what was spent stays spent."""
        with self._alone():
            self._base.execute("delete from limits")
            for endpoint, limit in limits.items():
                row = (limit.requests_per_minute, limit.tokens_per_minute, limit.max_calls, limit.max_tokens)
                cost = None if limit.max_cost is None else str(limit.max_cost)
                self._base.execute("insert into limits values (?, ?, ?, ?, ?, ?)", (endpoint, *row, cost))

    def take(self, endpoint: str, more: Amount, tokens: int, number: int | None = None) -> Grant:
        """Sets so much more aside for a try of a call (by its number, after the first), and a place in the pace."""
        with self._alone():
            row = self._row(endpoint)
            lacking = self._lacking(row, more)
            if lacking and self._bury(self._gone()):
                row = self._row(endpoint)
                lacking = self._lacking(row, more)
            if lacking:  # who waits for another try holds what the ones before came to, and gives nothing back
                self._base.execute("update held set flies = 0 where id = ?", (number,))
                flying = self._base.execute("select 1 from held where endpoint = ? and flies limit 1", (endpoint,))
                return Full() if flying.fetchone() else self._reached(endpoint, lacking, row)
            wait = self._pace(endpoint, "requests", row.limits.requests_per_minute, 1)
            wait = max(wait, self._pace(endpoint, "tokens", row.limits.tokens_per_minute, tokens))
            return Granted(self._hold(endpoint, more, number), wait)

    def settle(self, endpoint: str, number: int, came_to: Amount, tokens: int) -> None:
        """A call is over: what it came to is spent, and `tokens` of its place in the pace are given back; once."""
        with self._alone():
            if not self._base.execute("delete from held where id = ?", (number,)).rowcount:
                return  # told twice, or spent already because its run was thought to be gone
            self._spend(endpoint, came_to)
            limits = self._row(endpoint).limits
            self._pace(endpoint, "tokens", limits.tokens_per_minute, -tokens)

    def spent(self, endpoint: str) -> Amount:
        """What all runs have spent there."""
        return self._row(endpoint).spent

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Nobody else writes meanwhile; all of it is there afterwards, or nothing."""
        try:
            self._base.execute("begin immediate")
            try:
                yield
            except BaseException:
                self._base.execute("rollback")
                raise
            self._base.execute("commit")
        except sqlite3.Error as error:
            raise sqlite_fault(error, self._path) from error

    def _row(self, endpoint: str) -> _Row:
        limits = self._base.execute("select * from limits where endpoint = ?", (endpoint,)).fetchone()
        spent = self._base.execute("select calls, tokens, cost from spent where endpoint = ?", (endpoint,)).fetchone()
        held = self._base.execute("select calls, tokens, cost from held where endpoint = ?", (endpoint,)).fetchall()
        _, *numbers, cost = limits or (endpoint, None, None, None, None, None)
        names = ("requests_per_minute", "tokens_per_minute", "max_calls", "max_tokens")
        return _Row(
            limits=Limits(**dict(zip(names, numbers, strict=True)), max_cost=None if cost is None else float(cost)),
            spent=_amount(spent) if spent else Amount(),
            held=sum(map(_amount, held), Amount()),
        )

    def _lacking(self, row: _Row, more: Amount) -> str:
        return row.limits.caps.exceeded_by(row.spent + row.held + more)

    def _reached(self, endpoint: str, name: str, row: _Row) -> Reached:
        key = f"limits.{endpoint}.max_{name}"
        cap, spent = getattr(row.limits.caps, name), getattr(row.spent, name)
        shown = f"{spent:,}" if isinstance(spent, int) else f"{spent:.4f}"
        return Reached(key, f"{key} is {cap:,}, with {used_words(name, shown)} by all runs that share it")

    def _pace(self, endpoint: str, kind: str, per_minute: int | None, amount: float) -> float:
        """Takes so much of a minute's allowance, going into debt if need be; the seconds until it may be used."""
        if not per_minute:
            return 0.0
        most, now = max(1.0, per_minute * _BURST), self._clock()
        found = self._base.execute(
            "select level, at from buckets where endpoint = ? and kind = ?", (endpoint, kind)
        ).fetchone()
        level, at = found or (most, now)
        # A clock that is behind has begun anew with the machine: then nobody waits for anything from before.
        level = min(most, level + (now - at) * per_minute / 60) if now >= at else most
        missing = min(amount, most) - level
        self._base.execute("insert or replace into buckets values (?, ?, ?, ?)", (endpoint, kind, level - amount, now))
        return max(0.0, missing * 60 / per_minute)

    def _hold(self, endpoint: str, more: Amount, number: int | None) -> int:
        if number is None:
            row = (endpoint, self._folder, more.calls, more.tokens, _text(more.cost))
            found = self._base.execute(
                "insert into held (endpoint, folder, calls, tokens, cost) values (?, ?, ?, ?, ?)", row
            ).lastrowid
            return cast(int, found)
        [before] = self._base.execute("select calls, tokens, cost from held where id = ?", (number,))
        after = _amount(before) + more
        self._base.execute(
            "update held set calls = ?, tokens = ?, cost = ?, flies = 1 where id = ?",
            (after.calls, after.tokens, _text(after.cost), number),
        )
        return number

    def _spend(self, endpoint: str, more: Amount) -> None:
        after = self._row(endpoint).spent + more
        self._base.execute(
            "insert or replace into spent values (?, ?, ?, ?)", (endpoint, after.calls, after.tokens, _text(after.cost))
        )

    def _gone(self) -> list[str]:
        """The runs that hold something and that nobody writes."""
        folders = [str(row[0]) for row in self._base.execute("select distinct folder from held")]
        return [each for each in folders if each != self._folder and not is_written(Path(each))]

    def _bury(self, folders: list[str]) -> bool:
        """What these runs hold is spent, at its worst; whether there was anything."""
        found = False
        for folder in folders:
            rows = self._base.execute("select endpoint, calls, tokens, cost from held where folder = ?", (folder,))
            for endpoint, *amount in rows.fetchall():
                self._spend(endpoint, _amount(amount))
                found = True
            self._base.execute("delete from held where folder = ?", (folder,))
        return found


def _amount(row: tuple[object, ...] | list[object]) -> Amount:
    calls, tokens, cost = row
    return Amount(calls=cast(int, calls), tokens=cast(int, tokens), cost=Decimal(str(cost)))


def _text(cost: Decimal) -> str:
    return str(cost.quantize(_PLACES, rounding=ROUND_CEILING))
