"""Makes folders in folders, deeper than any path may be."""
# ends: exit

import os

for _ in range(3000):
    try:
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    except OSError:
        break
