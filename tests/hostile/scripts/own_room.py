"""Takes its work folder apart and puts others' things into it."""
# ends: exit

import os

os.makedirs("more/rooms", exist_ok=True)
os.mkfifo("pipe.json")
os.symlink("/etc/ld.so.cache", "link.json")
with open("result.json", "w") as file:
    file.write("{}")
os.chmod("result.json", 0)
for what in (
    lambda: os.chmod("more", 0),
    lambda: os.rename("/sandbox", "/tmp/elsewhere"),
    lambda: os.symlink("/", "/sandbox"),
    lambda: os.chmod("/sandbox", 0),
    lambda: os.chmod("/tmp", 0),
    lambda: os.chmod("/", 0),
    lambda: os.unlink("/dev/null"),
    lambda: os.rmdir("/proc"),
):
    try:
        what()
    except OSError:
        pass
