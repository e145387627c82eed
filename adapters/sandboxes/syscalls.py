"""
Which system calls code behind the walls may make, as a program for the kernel's filter (seccomp).

Closed is what reaches the machine in spite of name spaces (keys, other processes, kernel modules, the host of a virtual
machine), what opens large parts of the kernel to attacks (io_uring, bpf, perf, user name spaces of one's own), and what
takes memory that no limit counts. Everything else stays open: programs of any kind are to run. Numbers that are newer
than this list do not exist behind the walls.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import frozen

Test = Literal["is", "is not", "any of", "all of"]
# A code, how many instructions to skip if its test is true and if it is false, and a value (struct sock_filter).
Instruction = tuple[int, int, int, int]

# Classic BPF, from linux/filter.h.
_LOAD, _AND, _GREATER_EQUAL, _EQUAL, _ANY_BIT, _RETURN = 0x20, 0x54, 0x35, 0x15, 0x45, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000  # SECCOMP_RET_… of linux/seccomp.h
_NUMBER_AT, _MACHINE_AT, _ARGUMENTS_AT = 0, 4, 16  # offsets in its struct seccomp_data

# The last number whose meaning was looked at; x32, a second set of numbers on x86_64, lies far beyond it.
NEWEST = 469


@frozen
class Machine:
    """A processor: its name in the kernel's audit, and its column in the table of calls."""

    audit: int
    column: int


# AUDIT_ARCH_X86_64 and AUDIT_ARCH_AARCH64 of linux/audit.h.
MACHINES: Mapping[str, Machine] = {"x86_64": Machine(0xC000003E, 0), "aarch64": Machine(0xC00000B7, 1)}

# By name: the number on x86_64 and on aarch64; both have the same from 424 on.
_CLOSED: Mapping[str, tuple[int | None, int | None]] = {
    # keys of the user
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # other processes
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "ioprio_set": (251, 30), "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # name spaces and mounts
    "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442), "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264), "open_by_handle_at": (304, 265),
    # large parts of the kernel that no script needs
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282), "fanotify_init": (300, 262),
    "io_setup": (206, 0), "io_submit": (209, 2), "modify_ldt": (154, None),
    # the machine itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "create_module": (174, None), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443), "syslog": (103, 116),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "vhangup": (153, 58), "uselib": (134, None), "_sysctl": (156, None), "sysfs": (139, None), "ustat": (136, None),
    "nfsservctl": (180, 42), "lookup_dcookie": (212, 18),
    # memory that belongs to no process and to no limit
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194), "shmat": (30, 196),
    "shmctl": (31, 195), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180), "vmsplice": (278, 75),
}  # fmt: skip
# Those that programs do without when the kernel is too old for them.
_ABSENT: Mapping[str, tuple[int | None, int | None]] = {
    "clone3": (435, 435), "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    # which programs of this machine are started shows where their files are watched
    "inotify_init": (253, None), "inotify_init1": (294, 26), "inotify_add_watch": (254, 27),
    "fanotify_mark": (301, 263),
}  # fmt: skip


@frozen
class _Rule:
    """A call that is closed for some values of one argument (its lower half, which is all that these calls read)."""

    numbers: tuple[int, int]
    argument: int
    test: Test
    values: tuple[int, ...]
    error: int = errno.EPERM


# All CLONE_NEW… flags but that of time, whose bit means something else to clone.
_NEW_SPACES = 0x7E020000
_NEW_TIME = 0x80  # CLONE_NEWTIME of linux/sched.h
# MAP_SHARED with MAP_ANONYMOUS, and MAP_HUGETLB.
_SHARED_ANONYMOUS, _HUGE_PAGES = 0x21, 0x40000
_LOCAL, _INTERNET, _INTERNET_6 = 1, 2, 10  # AF_UNIX, AF_INET and AF_INET6 of linux/socket.h
_PROCESS_1 = 1  # the first one of its name space: ours, which watches the script
_SET_LEASE, _NOTIFY = 1024, 1026  # F_SETLEASE and F_NOTIFY of linux/fcntl.h

_RULES = (
    _Rule((56, 220), 0, "any of", (_NEW_SPACES,)),  # clone
    _Rule((272, 97), 0, "any of", (_NEW_SPACES | _NEW_TIME,)),  # unshare
    # Shared memory without a file lives on when all but one page is unmapped; only the disk's files are counted.
    _Rule((9, 222), 3, "all of", (_SHARED_ANONYMOUS,)),  # mmap
    _Rule((9, 222), 3, "any of", (_HUGE_PAGES,)),
    # A socket of another family, such as the one to the host of a virtual machine, knows no network name space.
    _Rule((41, 198), 0, "is not", (_LOCAL, _INTERNET, _INTERNET_6), errno.EAFNOSUPPORT),  # socket
    _Rule((53, 199), 0, "is not", (_LOCAL,), errno.EAFNOSUPPORT),  # socketpair
    # Older ways to watch files.
    *(_Rule((72, 25), 1, "is", (what,)) for what in (_SET_LEASE, _NOTIFY)),  # fcntl
    # What waits in sockets is counted by their number, so their buffers stay as they are.
    _Rule((54, 208), 2, "is", (7,)),  # setsockopt: SO_SNDBUF
    # Process 1 may have the user of the script, which must neither slow it down nor limit it.
    *(
        _Rule(numbers, 0, "is", (_PROCESS_1,))
        for numbers in ((302, 261), (142, 118), (144, 119), (203, 122), (314, 274))  # prlimit64, sched_set…
    ),
    _Rule((141, 140), 0, "is not", (0,)),  # setpriority: only of one process
    _Rule((141, 140), 1, "is", (_PROCESS_1,)),
)


def filter_for(machine: str) -> bytes | None:
    """The filter's instructions for a processor (`os.uname().machine`); None where its numbers are not known."""
    here = MACHINES.get(machine)
    return None if here is None else b"".join(struct.pack("<HBBI", *each) for each in _instructions(here))


def _instructions(machine: Machine) -> Iterator[Instruction]:
    yield _LOAD, 0, 0, _MACHINE_AT
    yield _EQUAL, 1, 0, machine.audit
    yield _RETURN, 0, 0, _KILL  # the numbers of another processor, which this one also runs
    yield _LOAD, 0, 0, _NUMBER_AT
    yield _GREATER_EQUAL, 0, 1, NEWEST + 1
    yield _RETURN, 0, 0, _ERROR | errno.ENOSYS
    for calls, error in ((_CLOSED, errno.EPERM), (_ABSENT, errno.ENOSYS)):
        for numbers in calls.values():
            number = numbers[machine.column]
            if number is not None:
                yield _EQUAL, 0, 1, number
                yield _RETURN, 0, 0, _ERROR | error
    for rule in _RULES:
        tested = list(_tested(rule))
        yield _EQUAL, 0, len(tested) + 1, rule.numbers[machine.column]
        yield from tested
        # The test has loaded an argument: the rules that follow look at the number again.
        yield _LOAD, 0, 0, _NUMBER_AT
    yield _RETURN, 0, 0, _ALLOW


def _tested(rule: _Rule) -> Iterator[Instruction]:
    """Loads the argument and returns the error where the test holds; else goes on behind the last one."""
    yield _LOAD, 0, 0, _ARGUMENTS_AT + 8 * rule.argument
    refuse = (_RETURN, 0, 0, _ERROR | rule.error)
    match rule.test:
        case "is":
            yield _EQUAL, 0, 1, rule.values[0]
        case "is not":
            for place, value in enumerate(rule.values):
                yield _EQUAL, len(rule.values) - place, 0, value
        case "any of":
            yield _ANY_BIT, 0, 1, rule.values[0]
        case "all of":
            yield _AND, 0, 0, rule.values[0]
            yield _EQUAL, 0, 1, rule.values[0]
    yield refuse
