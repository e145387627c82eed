"""Asks the kernel for what no script needs: spaces of its own, other processes, programs in the kernel, mounts."""
# ends: exit

import ctypes
import os

BOTH = {
    "io_uring_setup": (425, 8, bytes(120)), "open_tree": (428, -100, b"/", 1), "fsopen": (430, b"tmpfs", 0),
    "clone3": (435, bytes(88), 88), "pidfd_getfd": (438, 3, 1, 0), "memfd_secret": (447, 0), "newer": (470, 0),
}
OWN = {
    "x86_64": {
        "unshare user": (272, 0x10000000), "unshare mounts": (272, 0x20000), "clone user": (56, 0x10000000 | 17, 0),
        "ptrace": (101, 16, os.getppid(), 0, 0), "process_vm_readv": (310, 1, 0, 0, 0, 0, 0), "bpf": (321, 0, bytes(120), 120),
        "perf_event_open": (298, bytes(120), 0, -1, -1, 0), "userfaultfd": (323, 1), "setns": (308, 3, 0), "mount": (165, b"none", b"/tmp", b"tmpfs", 0, 0),
        "umount2": (166, b"/usr", 2), "pivot_root": (155, b"/", b"/tmp"), "chroot": (161, b"/tmp"), "kexec_load": (246, 0, 0, 0, 0),
        "memfd_create": (319, b"x", 0), "shmget": (29, 0, 1 << 20, 0o1600), "msgget": (68, 0, 0o1600), "semget": (64, 0, 1, 0o1600),
        "mq_open": (240, b"x", 0o102, 0o600, 0), "io_setup": (206, 8, bytes(8)), "syslog": (103, 10, 0, 0), "x32": (0x40000000 + 39,),
        "inotify_init": (253,), "inotify_init1": (294, 0), "inotify_add_watch": (254, 0, b"/usr/bin", 0x20), "fanotify_mark": (301, 0, 1, 0x20, -100, b"/usr"),
        "dnotify": (72, os.open("/usr/bin", os.O_RDONLY), 1026, 1), "lease": (72, os.open("/usr/bin/env", os.O_RDONLY), 1024, 0),
    },
    "aarch64": {
        "unshare user": (97, 0x10000000), "unshare mounts": (97, 0x20000), "clone user": (220, 0x10000000 | 17, 0),
        "ptrace": (117, 16, os.getppid(), 0, 0), "process_vm_readv": (270, 1, 0, 0, 0, 0, 0), "bpf": (280, 0, bytes(120), 120),
        "perf_event_open": (241, bytes(120), 0, -1, -1, 0), "userfaultfd": (282, 1), "setns": (268, 3, 0), "mount": (40, b"none", b"/tmp", b"tmpfs", 0, 0),
        "umount2": (39, b"/usr", 2), "pivot_root": (41, b"/", b"/tmp"), "chroot": (51, b"/tmp"), "kexec_load": (104, 0, 0, 0, 0),
        "memfd_create": (279, b"x", 0), "shmget": (194, 0, 1 << 20, 0o1600), "msgget": (186, 0, 0o1600), "semget": (190, 0, 1, 0o1600),
        "mq_open": (180, b"x", 0o102, 0o600, 0), "io_setup": (0, 8, bytes(8)), "syslog": (116, 10, 0, 0),
        "inotify_init1": (26, 0), "inotify_add_watch": (27, 0, b"/usr/bin", 0x20), "fanotify_mark": (263, 0, 1, 0x20, -100, b"/usr"),
        "dnotify": (25, os.open("/usr/bin", os.O_RDONLY), 1026, 1), "lease": (25, os.open("/usr/bin/env", os.O_RDONLY), 1024, 0),
    },
}  # fmt: skip
libc = ctypes.CDLL(None, use_errno=True)
parent = os.getpid()
for name, (number, *arguments) in {**BOTH, **OWN[os.uname().machine]}.items():
    given = [each if isinstance(each, bytes) else ctypes.c_long(each) for each in arguments]
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *given)
    if os.getpid() != parent:
        os._exit(0)
    if result >= 0 or ctypes.get_errno() not in (1, 38):
        print("ESCAPED:", name, result, os.strerror(ctypes.get_errno()), flush=True)
for family in (16, 17, 38, 40):  # the kernel's, raw packets, its ciphers, the host of a virtual machine
    descriptor = libc.socket(family, 1 if family == 40 else 5 if family == 38 else 3, 0)
    if descriptor >= 0:
        print("ESCAPED: a socket of family", family)
with open("/proc/cmdline") as file:  # how the machine was started
    if file.read():
        print("ESCAPED: /proc/cmdline")
with open("/proc/self/cgroup") as file:  # which service this is of
    for line in file:
        path = line.rstrip().split(":", 2)[2]
        if path != "/" and not path.startswith("/../skillopt-es-"):
            print("ESCAPED: the group", path)
