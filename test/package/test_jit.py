"""Compiled kernels on disk never outlive the sources they were compiled from, wherever numba keeps them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import humanoid_control.jit

PROGRAM = """
import sys; sys.path.insert(0, {folder!r})
from ours.outer import twice
print(twice(1.0))
"""


@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside the sources", "NUMBA_CACHE_DIR"])
def test_a_kernel_is_compiled_anew_when_one_that_it_calls_has_changed(tmp_path, elsewhere):
    package = tmp_path / "ours"
    package.mkdir()
    text = Path(humanoid_control.jit.__file__).read_text()
    (package / "jit.py").write_text(text)
    (package / "outer.py").write_text(
        "from ours.jit import kernel\nfrom ours.inner import once\n\n@kernel\ndef twice(x):\n    return 2 * once(x)\n"
    )
    env = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    if elsewhere:
        env["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")

    def result(factor, when):
        (package / "inner.py").write_text(
            f"from ours.jit import kernel\n\n@kernel\ndef once(x):\n    return {factor} * x\n"
        )
        os.utime(package / "inner.py", (when, when))
        program = PROGRAM.format(folder=str(tmp_path))
        run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, check=True)
        return float(run.stdout)

    now = (package / "outer.py").stat().st_mtime
    assert result(1.0, now - 100) == 2.0
    os.utime(package / "outer.py", (now - 100, now - 100))
    kept = list(tmp_path.rglob("outer.twice*.nbi"))
    assert len(kept) == 1 and (tmp_path / "cache" in kept[0].parents) == elsewhere
    assert result(3.0, now + 100) == 6.0
