"""Records packed as a table of addresses are the same records inside of compiled code."""

import copy
import os
import pickle
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba.core.errors import TypingError

from humanoid_control.compiled.array_types import B1, F1, F2, F3, I1, I2
from humanoid_control.compiled.jit import config, kernel
from humanoid_control.compiled.packed import (
    BoundRecord,
    Packed,
    local_indices,
    local_matrix,
    local_vector,
    unpack,
)


class Inner(NamedTuple):
    weights: F1
    factor: float


class Outer(NamedTuple):
    table: F2
    inner: Inner
    count: int
    flag: bool
    cube: F3
    index: I1
    pairs: I2
    mask: B1


class Undeclared(NamedTuple):
    array: np.ndarray


class Two(NamedTuple):  # fields of one kind are another kind of tuple to the compiler
    a: F1
    b: F1


@kernel
def digest_at(table, out):
    """Every field in a sum of its own, and a change of each array."""
    o = unpack(table, Outer)
    out[0] = o.table[1, 2] + 10 * o.table.shape[0] + o.table.shape[1]
    out[1] = o.inner.weights.sum() * o.inner.factor
    out[2], out[3] = o.count, 1.0 if o.flag else 0.0
    out[4] = o.cube[1, 2, 3] + o.cube[0].sum()
    out[5] = o.index[-1] * 1000 + o.pairs[1, 0]
    for k in range(o.mask.shape[0]):
        out[6] += o.mask[k]
    o.cube[1, 0, 0] = -7.0
    o.mask[0] = False


@kernel
def swap_at(table):
    """Exchange two arrays."""
    t = unpack(table, Two)
    for k in range(t.a.shape[0]):
        t.a[k], t.b[k] = t.b[k], t.a[k]


def outer(**changes):
    record = Outer(
        np.arange(6.0).reshape(2, 3),
        Inner(np.array([0.5, 0.25]), -2.0),
        -3,
        True,
        np.arange(24.0).reshape(2, 3, 4),
        np.array([1, 2, 5]),
        np.array([[1, 2], [3, 4]]),
        np.array([True, False, True, True]),
    )
    return record._replace(**changes)


def digest(packed):
    out = np.zeros(7)
    digest_at(packed.table, out)
    return list(out)


EXPECTED = [5.0 + 23, -1.5, -3.0, 1.0, 23.0 + 66, 5003.0, 3.0]


def test_all_kinds_of_fields_arrive():
    record = outer()
    assert digest(Packed(record)) == EXPECTED
    assert record.cube[1, 0, 0] == -7.0
    assert not record.mask[0]


def test_scalars_are_taken_by_their_bits():
    for value in (np.inf, -0.0, 1e-310, 3.5):
        got = digest(Packed(outer(inner=Inner(np.ones(1), value), count=2**40, flag=False)))
        assert got[1:4] == [value, 2.0**40, 0.0]


def test_changed_contents_are_seen():
    record = outer()
    packed = Packed(record)
    record.table[:] += 1.0
    record.inner.weights[0] = 2.0
    assert digest(packed)[:2] == [29.0, -4.5]


def test_a_record_of_one_kind_of_array():
    two = Two(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    swap_at(Packed(two).table)
    assert (two.a.tolist(), two.b.tolist()) == ([3.0, 4.0], [1.0, 2.0])


def test_a_bound_record_is_packed_anew_for_other_objects_only():
    made = []

    def make(a, b):
        made.append(1)
        return Two(a, b)

    bound, a = BoundRecord(make), np.array([1.0])
    for other, count in ((np.array([2.0]), 1), (np.array([3.0]), 2)):
        value = other[0]
        swap_at(bound.table(a, other))
        assert a[0] == value, "also where the first one has gone, and another lies in its place"
        swap_at(bound.table(a, other))
        assert other[0] == value and len(made) == count


def test_empty_arrays():
    packed = Packed(Two(np.zeros(0), np.zeros(0)))
    swap_at(packed.table)
    assert packed.record.a.shape == packed.record.b.shape == (0,)


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))])
def test_copies_have_their_own_table(again):
    packed = Packed(outer())
    other = again(packed)
    assert digest(other) == EXPECTED
    assert digest(packed)[0] == EXPECTED[0]
    shared = again is copy.copy
    assert (packed.record.cube[1, 0, 0] == other.record.cube[1, 0, 0]) or not shared


@pytest.mark.parametrize(
    "changes",
    [
        {"table": np.zeros((2, 3), dtype=np.float32)},
        {"table": np.zeros(6)},
        {"table": np.zeros((3, 2)).T},
        {"index": np.zeros(3)},
        {"index": np.arange(6)[::2]},
        {"table": [[1.0, 2.0]]},
        {"inner": (np.zeros(2), 1.0)},
        {"mask": np.zeros(4)},
    ],
)
def test_other_arrays_than_declared_are_refused(changes):
    with pytest.raises(TypeError, match=f"Outer.{next(iter(changes))} must be") as error:
        Packed(outer(**changes))
    assert "\n" not in str(error.value)


def test_read_only_arrays_are_refused():
    frozen = np.zeros((2, 3))
    frozen.flags.writeable = False
    with pytest.raises(TypeError, match="writable"):
        Packed(outer(table=frozen))


def test_fields_must_be_declared():
    with pytest.raises(TypeError, match=r"Undeclared\.array: declare"):
        Packed(Undeclared(np.zeros(2)))


PROGRAM = """
import numpy as np
from typing import NamedTuple
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.array_types import F1
from humanoid_control.compiled.packed import BoundRecord, Packed, unpack

class Numbers(NamedTuple):
    values: F1
    scale: float

@kernel
def total_at(table):
    n = unpack(table, Numbers)
    return n.values.sum() * n.scale

total = total_at(Packed(Numbers(np.arange(4.0), 2.0)).table)
print(total, sum(total_at.stats.cache_hits.values()) if hasattr(total_at, "stats") else "plain")
"""


def test_kept_on_disk_and_without_compilation(tmp_path):
    """A new process takes the kept kernel; without compilation the record itself goes in."""
    (tmp_path / "program.py").write_text(PROGRAM)
    env = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_")} | {"NUMBA_CACHE_DIR": str(tmp_path / "c")}

    def run(**more):
        command = [sys.executable, str(tmp_path / "program.py")]
        return subprocess.run(command, env=env | more, capture_output=True, text=True, check=True).stdout.split()

    assert run() == ["12.0", "0"]
    assert run() == ["12.0", "1"]
    assert run(NUMBA_DISABLE_JIT="1") == ["12.0", "plain"]


@kernel
def turned(A):
    """Rows of A (2, 3) in another order, by arrays of this call."""
    B, v, order = local_matrix(2, 3), local_vector(3), local_indices(2)
    order[0], order[1] = 1, 0
    for r in range(2):
        for c in range(3):
            B[order[r], c] = A[r, c]
    for c in range(3):
        v[c] = B[0, c] - B[1, c]
    return B.shape[0] * 100 + B.shape[1] * 10 + v.shape[0], B[0, 0], B[1, 2], v[0], v[1], v[2]


@kernel
def turned_twice(A):
    """Two calls in a loop: neither's arrays reach the other's."""
    total = 0.0
    for k in range(A.shape[0]):
        work = local_vector(2)
        work[0], work[1] = A[k, 0, 0], 1.0
        total += turned(A[k])[1] + work[0] * work[1]
    return total


def test_arrays_of_one_call_are_on_its_stack():
    A = np.array([[1.0, 2.0, 3.0], [40.0, 50.0, 60.0]])
    assert turned(A) == (233, 40.0, 3.0, 39.0, 48.0, 57.0) == getattr(turned, "py_func", turned)(A)
    many = np.random.default_rng(1).normal(size=(200_000, 2, 3))  # a stack that grew by each would end here
    assert turned_twice(many) == pytest.approx(many[:, 1, 0].sum() + many[:, 0, 0].sum())


def test_arrays_of_one_call_have_a_constant_shape():
    if config.DISABLE_JIT:
        pytest.skip("arrays of plain Python have any shape")

    @kernel
    def of_any_length(n):
        return local_vector(n)[0]

    with pytest.raises(TypingError):
        of_any_length(3)
