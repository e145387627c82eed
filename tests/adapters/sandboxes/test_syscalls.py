"""The filter of system calls, run as the kernel runs it, for both processors."""

from __future__ import annotations

import struct

import pytest

from skillopt_es.adapters.sandboxes.syscalls import MACHINES, NEWEST, filter_for

ALLOWED, KILLED = 0x7FFF0000, 0x80000000
NO, ABSENT, NO_FAMILY = 0x50001, 0x50026, 0x50061


def verdict(machine: str, number: int, *arguments: int, audit: int | None = None) -> int:
    """What the filter says to a call."""
    given = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("<IIQ6Q", number & 0xFFFFFFFF, MACHINES[machine].audit if audit is None else audit, 0, *given)
    program = filter_for(machine)
    assert program is not None
    instructions = [struct.unpack_from("<HBBI", program, at) for at in range(0, len(program), 8)]
    place = loaded = 0
    while True:
        code, if_so, if_not, value = instructions[place]
        place += 1
        if code == 0x06:
            return int(value)
        if code == 0x20:
            loaded = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            loaded &= value
        else:
            holds = {0x15: loaded == value, 0x35: loaded >= value, 0x45: bool(loaded & value)}[code]
            place += if_so if holds else if_not


@pytest.mark.parametrize(
    ("machine", "keyctl", "ptrace", "memfd", "shmget"),
    [("x86_64", 250, 101, 319, 29), ("aarch64", 219, 117, 279, 194)],
)
def test_what_no_script_needs_is_closed(machine: str, keyctl: int, ptrace: int, memfd: int, shmget: int) -> None:
    """On both, by their own numbers; what programs do without if it is missing is missing."""
    assert [verdict(machine, each) for each in (keyctl, ptrace, memfd, shmget, 428, 447)] == [NO] * 6
    assert [verdict(machine, each) for each in (425, 426, 427, 435, NEWEST + 1, 0x40000000 + 39, -1)] == [ABSENT] * 7


@pytest.mark.parametrize(("machine", "execve", "write"), [("x86_64", 59, 1), ("aarch64", 221, 64)])
def test_what_programs_do_is_open(machine: str, execve: int, write: int) -> None:
    """Also with many arguments."""
    assert verdict(machine, execve) == verdict(machine, write, 1, 2**63, 3, 4, 5, 6) == ALLOWED


@pytest.mark.parametrize("machine", MACHINES)
def test_the_numbers_of_another_processor_end_the_script(machine: str) -> None:
    """Those of 32-bit programs, for one."""
    assert verdict(machine, 20, audit=0x40000003) == verdict(machine, 20, audit=0) == KILLED


@pytest.mark.parametrize(("machine", "clone", "unshare"), [("x86_64", 56, 272), ("aarch64", 220, 97)])
def test_new_spaces_are_closed_and_new_processes_are_not(machine: str, clone: int, unshare: int) -> None:
    """By the flags; a thread is no name space."""
    assert verdict(machine, clone, 0x3D0F00) == verdict(machine, clone, 0x1200011) == ALLOWED
    assert verdict(machine, unshare, 0x400) == ALLOWED
    for flag in (0x20000, 0x10000000, 0x40000000, 0x2000000):
        assert verdict(machine, clone, flag | 17) == verdict(machine, unshare, flag) == NO


@pytest.mark.parametrize(("machine", "mmap"), [("x86_64", 9), ("aarch64", 222)])
def test_memory_that_outlives_its_mapping_is_closed(machine: str, mmap: int) -> None:
    """Shared without a file; a shared file and private memory are counted elsewhere."""
    assert [verdict(machine, mmap, 0, 1, 3, flags) for flags in (0x22, 0x01, 0x02, 0x20)] == [ALLOWED] * 4
    assert [verdict(machine, mmap, 0, 1, 3, flags) for flags in (0x21, 0x23, 0x40022)] == [NO] * 3


@pytest.mark.parametrize(("machine", "socket", "pair"), [("x86_64", 41, 53), ("aarch64", 198, 199)])
def test_only_sockets_that_a_name_space_holds_are_open(machine: str, socket: int, pair: int) -> None:
    """Those of other families reach the machine around it."""
    assert [verdict(machine, socket, family) for family in (1, 2, 10)] == [ALLOWED] * 3
    assert [verdict(machine, socket, family) for family in (0, 3, 16, 38, 40)] == [NO_FAMILY] * 5
    assert (verdict(machine, pair, 1), verdict(machine, pair, 2)) == (ALLOWED, NO_FAMILY)


@pytest.mark.parametrize(("machine", "prlimit", "priority"), [("x86_64", 302, 141), ("aarch64", 261, 140)])
def test_process_1_cannot_be_slowed_down(machine: str, prlimit: int, priority: int) -> None:
    """Oneself can."""
    assert (verdict(machine, prlimit, 0), verdict(machine, prlimit, 7), verdict(machine, prlimit, 1)) == (
        ALLOWED, ALLOWED, NO,
    )  # fmt: skip
    assert verdict(machine, priority, 0, 0) == ALLOWED
    assert verdict(machine, priority, 0, 1) == verdict(machine, priority, 2, 65534) == NO


def test_a_processor_whose_numbers_are_not_known_has_no_filter() -> None:
    """And so no sandbox."""
    assert filter_for("riscv64") is None


@pytest.mark.parametrize(
    ("machine", "calls", "fcntl"), [("x86_64", (253, 254, 294, 301), 72), ("aarch64", (26, 27, 263), 25)]
)
def test_files_cannot_be_watched(machine: str, calls: tuple[int, ...], fcntl: int) -> None:
    """Those of the machine would say which programs its users start; locks and flags of files are open."""
    assert {verdict(machine, each) for each in calls} == {ABSENT}
    assert [verdict(machine, fcntl, 3, what) for what in (1024, 1026)] == [NO] * 2
    assert [verdict(machine, fcntl, 3, what) for what in (1, 2, 3, 4, 6, 7, 1025, 1030)] == [ALLOWED] * 8
