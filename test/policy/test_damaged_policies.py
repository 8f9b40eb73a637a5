"""Damaged policies of every format: each is read, or rejected in one line, in little time and memory."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="needs the extra 'policy': pip install 'humanoid_control[policy]'")

from test.damaged_contents import damaged_network
from test.good_files.policies import POLICY_KINDS
from test.policy.networks import beyondmimic_network

COMMAND = Path(__file__).resolve().parents[1] / "fuzz_files.py"


def test_damaged_policies_are_read_or_rejected_in_one_line():
    """A short run; `python test/fuzz_files.py -n 100000 --seed 48` with these kinds is the long one."""
    count = 20 * len(POLICY_KINDS)
    kinds = [word for kind in POLICY_KINDS for word in ("--kind", kind)]
    command = [sys.executable, str(COMMAND), "-n", str(count), "--seed", "7", *kinds]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400)
    assert done.returncode == 0 and f"{count} files, 0 failures" in done.stdout, done.stdout + done.stderr[-2000:]
    read = {m[1].strip(): int(m[2]) for m in re.finditer(r"(?m)^(.+?) loaded +(\d+) ", done.stdout)}
    assert set(read) == set(POLICY_KINDS) and sum(read.values()) > 20, "files that all are rejected try no reader"


def test_a_damaged_network_is_still_one_with_other_words_or_shapes(tmp_path):
    data = beyondmimic_network(tmp_path / "a.onnx").read_bytes()
    words = shapes = 0
    good = onnx.load_model_from_string(data)
    for seed in range(60):
        rng = np.random.default_rng(seed)
        found = onnx.load_model_from_string(damaged_network(data, rng, lambda text: text[::-1]))
        words += list(found.metadata_props) != list(good.metadata_props)
        shapes += list(found.graph.input) != list(good.graph.input) or list(found.graph.output) != list(
            good.graph.output
        )
    assert words > 30 and shapes > 3
    assert damaged_network(b"no network", np.random.default_rng(0), bytes) == b"no network"
