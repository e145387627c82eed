"""Takes files, time and priority from process 1, and looks into it."""
# ends: exit

import os
import resource

for limit in range(16):
    for pair in ((0, 0), (1, 1)):
        try:
            resource.prlimit(1, limit, pair)
            print("ESCAPED: limited", limit)
        except (OSError, ValueError):
            pass
for what in (
    lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)),
    lambda: os.sched_setaffinity(1, {0}),
    lambda: os.setpriority(os.PRIO_PROCESS, 1, 19),
    lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19),
    lambda: os.setpriority(os.PRIO_PGRP, 1, 19),
    lambda: open("/proc/1/mem", "r+b"),
    lambda: open("/proc/1/environ", "rb").read(1),
    lambda: os.listdir("/proc/1/fd"),
    lambda: open("/proc/1/oom_score_adj", "r+b", 0).write(b"1000"),
    lambda: open("/proc/1/coredump_filter", "r+b", 0).write(b"0"),
    lambda: open("/proc/1/timerslack_ns", "r+b", 0).write(b"9999999999"),
    lambda: open("/proc/1/autogroup", "r+b", 0).write(b"19"),
    lambda: open("/proc/sysrq-trigger", "r+b", 0).write(b"h"),
    lambda: open("/proc/sys/kernel/pid_max", "r+b", 0).write(b"301"),
    lambda: open("/proc/sys/kernel/core_pattern", "r+b", 0).write(b"|/bin/sh"),
):
    try:
        what()
        print("ESCAPED: did", what.__code__.co_firstlineno)
    except OSError:
        pass
