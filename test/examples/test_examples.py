"""Every example is short, and runs; those with tests of their own are run there."""

import os
import subprocess
import sys

import pytest

from test.conftest import REPOSITORY

EXAMPLES = sorted((REPOSITORY / "examples").glob("*.py"))
LONGEST, SECONDS = 60, 300
RUN_ELSEWHERE = {  # with arguments and closer checks
    "drop_a_robot_with_any_integrator": "test/examples/test_simulation.py",
    "stand_push_and_plot": "test/examples/test_simulation.py",
    "many_clips": "test/examples/test_retargeting.py",
    "retarget_a_clip_to_your_urdf": "test/examples/test_retargeting.py",
    "tendon_lengths_to_angles": "test/tendons/test_example.py",
    "your_own_node": "test/examples/test_your_own_node.py",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda p: p.stem)
def test_an_example_is_short_and_says_what_one_learns(path):
    lines = path.read_text().splitlines()
    assert len(lines) < LONGEST
    assert lines[0].startswith('"""') and len(lines[0]) > 20


@pytest.mark.parametrize("name", RUN_ELSEWHERE)
def test_what_is_run_elsewhere_is(name):
    assert (REPOSITORY / "examples" / f"{name}.py").is_file()
    assert (REPOSITORY / RUN_ELSEWHERE[name]).is_file()


@pytest.mark.parametrize("path", [p for p in EXAMPLES if p.stem not in RUN_ELSEWHERE], ids=lambda p: p.stem)
def test_an_example_runs(path, tmp_path):
    env = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    result = subprocess.run(
        [sys.executable, str(path)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=SECONDS
    )
    if "ModuleNotFoundError" in result.stderr or "pip install" in result.stderr:
        pytest.skip(f"needs a package that is not installed: {result.stderr.strip().splitlines()[-1]}")
    assert result.returncode == 0, result.stderr
    assert result.stdout
