"""A bag whose disk is full: one reason, and nothing below it."""

import subprocess
import sys

SCRIPT = """
import gc, resource, signal, sys
from pathlib import Path
from humanoid_control.evaluation.bag import BagWriter
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
bag = BagWriter(Path(sys.argv[1]))
bag.add_topic("/said", "std_msgs/msg/String")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # a disk of 4 kB
try:
    for k in range(3000):
        bag.write("/said", k, bytes(1000))
except OSError:
    print("full")
try:
    bag.close()
except OSError as e:
    print("not closed")
del bag
gc.collect()
"""


def test_the_reason_is_the_last_word(tmp_path):
    """Python 3.13 tells of the file that is collected: its line was shown as the reason."""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "ignore", "-c", SCRIPT, str(tmp_path / "bag")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\n") == ["full", "not closed", ""]
    assert "OSError" not in done.stderr, done.stderr
