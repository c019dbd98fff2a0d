"""A process that pretends to run an arm: `python -m tests.study.pretend FOLDER NAME SECONDS`."""

import sys
import time
from pathlib import Path

from litebert.core.errors import BusyError
from litebert.training.launcher import exit_with_launcher

if __name__ == "__main__":
    exit_with_launcher()  # as litebert.study.run
    folder, name, seconds = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
    if seconds < 0:
        sys.exit(BusyError.exit_code)
    (folder / f"{name}.begun").write_text(str(time.time()))
    time.sleep(seconds)
    if seconds == 0:
        print("error: no room on the disk")
        sys.exit(2)
    (folder / f"{name}.ended").write_text(str(time.time()))
    (folder / f"{name}.json").write_text("{}")
