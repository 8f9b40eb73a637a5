"""docs/coverage.md names every capability of the sources, and every test it names exists."""

import ast
import functools
import re
from collections import Counter
from pathlib import Path

from test.package.violations import assert_none

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| ([A-Z]+-?\d+) \| (.+?) \| (.+) \|$", re.M)
WALKING = ((1, 5), (10, 17), (20, 23), (25, 26), (30, 33), (35, 37), (40, 48), (50, 53), (60, 64))
POLICIES = ((1, 16), (20, 35), (40, 48))
REAL_ROBOTS = ((1, 46), (50, 56), (60, 69), (70, 99))
EXPECTED = (
    [f"F{k}" for k in range(1, 38)]
    + [f"F-{k:02d}" for k in range(1, 71)]
    + [f"S{k:02d}" for k in range(1, 49)]
    + [f"TE-{k:02d}" for k in range(1, 22)]
    + [f"TC-{k:02d}" for k in (*range(1, 10), *range(20, 29))]
    + [f"HM-{k:02d}" for k in range(1, 22)]
    + [f"W{k:02d}" for part in WALKING for k in range(part[0], part[1] + 1)]
    + [f"PF-{k:02d}" for k in range(1, 29)]
    + [f"P{k:02d}" for part in POLICIES for k in range(part[0], part[1] + 1)]
    + [f"RE-{k:02d}" for k in range(1, 26)]
    + [f"R{k:02d}" for part in REAL_ROBOTS for k in range(part[0], part[1] + 1)]
)


def rows():
    return ROW.findall((ROOT / "docs" / "coverage.md").read_text())


@functools.cache
def functions(path):
    tree = ast.parse((ROOT / path).read_text())
    return {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}


def test_every_id_once_and_no_other():
    assert Counter(i for i, _, _ in rows()) == Counter(EXPECTED)


def test_every_proof_is_a_living_test_or_an_honest_word():
    found = []
    for name, _, proof in rows():
        if proof == "not yet" or proof.startswith("closed, because "):
            continue
        references = re.findall(r"`(test/[\w/]+\.py)::(test_\w+)`", proof)
        if not references:
            found.append(f"docs/coverage.md: {name}: '{proof}' is neither a test, 'not yet' nor 'closed, because ...'")
        for path, function in references:
            if not (ROOT / path).is_file():
                found.append(f"docs/coverage.md: {name}: {path} does not exist")
            elif function not in functions(path):
                found.append(f"docs/coverage.md: {name}: {path} has no {function}")
    assert_none(found)
