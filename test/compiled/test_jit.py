"""Compiled kernels on disk never outlive the sources they were compiled from, wherever numba keeps them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from humanoid_control.compiled import linking
from test.robots_under_test import nightly

COMPILED = Path(linking.__file__).parent
LARGEST = f"\n_LARGE = {linking._LARGE:_}  #"
LARGE, LINES = 4_000, 300  # [bytes] above which a kernel is called where it lies, here; lines of one that is larger
SOURCES = {
    "outer.py": "from ours.compiled.jit import kernel\nfrom ours.inner import once\n\n"
    "@kernel\ndef twice(x):\n    return 2 * once(x)\n",
    "inner.py": "from ours.compiled.jit import kernel\n"
    "from ours import FACTOR, numbers\nfrom ours.face import OFFSET\n\n"
    "@kernel\ndef once(x):\n    return 1.0 * FACTOR * numbers.SCALE * x + OFFSET\n",
    "__init__.py": "FACTOR = 1.0\n",
    "numbers.py": "SCALE = 1.0\n",
    "face/__init__.py": 'import importlib\n\n_LAZY = {"OFFSET": "low.offset"}\n\n'
    "def __getattr__(name):\n    return getattr(importlib.import_module('ours.face.' + _LAZY[name]), name)\n",
    "face/low/offset.py": "from ours.face.deep import (\n    DEEP,  # a comment\n)\n\nOFFSET = DEEP\n",
    "face/deep.py": "DEEP = 0.0\n",
    "records.py": "from typing import NamedTuple\n\nclass Pair(NamedTuple):\n    a: float\n    b: float\n",
    "total.py": "from ours.compiled.jit import kernel\n\n@kernel\ndef total(pair):\n    return pair.a + pair.b\n",
    "large.py": "from ours.compiled.jit import kernel\n\n@kernel\ndef large(x):\n    y = x\n"
    + "".join(f"    y = (y * {k}.5 + x) / (y * y + {k}.25)\n" for k in range(1, LINES))
    + "    if x < 0.0:\n        raise ValueError('below zero')\n    return y\n",
    "callers.py": "from ours.compiled.jit import kernel\nfrom ours.large import large\n\n"
    "@kernel\ndef small(x):\n    return large(x) + 1.0\n\n"
    "@kernel\ndef first(x):\n    return small(x) + large(2.0 * x)\n\n"
    "@kernel\ndef second(x):\n    return small(x) - large(2.0 * x)\n",
    "part.py": "from ours.compiled.jit import inlined, kernel\n\n"
    "@kernel\ndef called(x):\n    return 2.0 * x\n\n"
    "@inlined\ndef part(x):\n    return called(x) + 1.0\n\n"
    "@kernel\ndef whole(x):\n    return part(x) + part(2.0 * x)\n",
    "halves.py": "from ours.compiled.jit import kernel\nfrom ours.records import Pair\n\n"
    "@kernel\ndef halves(x):\n    return Pair(0.5 * x[0], 0.5 * x[1])\n\n"
    "@kernel(allocates=True)\ndef same(x):\n    return x\n",
    "arrays.py": "import numpy as np\nfrom ours.compiled.jit import kernel\n\n"
    "@kernel\ndef adds(x, y):\n    y[0] += x[0]\n    return max(x[1], y[1]) + np.sqrt(x[0])\n\n"
    "@kernel(allocates=True)\ndef row(A):\n    return A[1]\n\n"
    "@kernel\ndef adds_rows(A):\n    return adds(A[0], A[1])\n\n"
    "@kernel(allocates=True)\ndef adds_a_row(A):\n    return adds(row(A), A[0])\n\n"
    "@kernel(allocates=True)\ndef makes(A):\n    z = np.zeros(2)\n    return adds(A[0], z)\n\n"
    "@kernel(allocates=True)\ndef doubles(A):\n    return (A[0] + A[0])[1]\n\n"
    "@kernel(allocates=True)\ndef copies(A):\n    return A.copy()[0, 1]\n\n"
    "@kernel(allocates=True)\ndef both(A):\n    return A[0], 1.0\n",
    "indices.py": "from ours.compiled.jit import kernel\n\n"
    "LAST = -1\n\n"
    "@kernel\ndef written(a):\n    a[0, -1] += 10.0\n"
    "    return a[-1, -2] + a[LAST, LAST] + a[-1:, -1:][0, 0] + a[0][-1]\n\n"
    "@kernel\ndef computed(a, i):\n    return a[0, i]\n",
    "stranger.py": "NOBODY_NEEDS_THIS = 1.0\n",
}


class Package:
    """A package with kernels in a folder of its own, run in new processes."""

    def __init__(self, tmp_path):
        # Tests say themselves where numba is plain.
        own = ("NUMBA_", "HUMANOID_PLAIN_NUMBA")
        self.folder, self.env = tmp_path / "ours", {k: v for k, v in os.environ.items() if not k.startswith(own)}
        for name, text in SOURCES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(text)
        (self.folder / "compiled").mkdir()
        for path in COMPILED.glob("*.py"):
            text = path.read_text().replace("humanoid_control.", "ours.")
            if path.name == "linking.py":
                assert LARGEST in text
                text = text.replace(LARGEST, f"\n_LARGE = {LARGE:_}  #")
            (self.folder / "compiled" / path.name).write_text(text)
        # Times of files say nothing: an archive may bring old ones, a clock may be set back.
        for path in self.folder.rglob("*.py"):
            os.utime(path, (1e9, 1e9))

    def edit(self, name, old, new):
        path = self.folder / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))
        os.utime(path, (1e9, 1e9))

    def forget(self):
        """Remove the kernels kept beside the sources."""
        for kept in self.folder.rglob("*.nb[ci]"):
            kept.unlink()

    def python(self, program, **env):
        """What a program that may import the package prints."""
        head = f"import sys; sys.path.insert(0, {str(self.folder.parent)!r}); sys.dont_write_bytecode = True\n"
        command = [sys.executable, "-c", head + program]
        return subprocess.run(command, env=self.env | env, capture_output=True, text=True, check=True).stdout

    def run(self, **env):
        """What the kernel gives for 1, whether it counted as compiled before, and how often a kept one was found."""
        program = (
            "from ours.compiled.jit import are_compiled\nfrom ours.outer import twice\nbefore = are_compiled([twice])\n"
            "print(twice(1.0), before, sum(twice.stats.cache_hits.values()) if hasattr(twice, 'stats') else None)"
        )
        value, before, hits = self.python(program, **env).split()
        return float(value), before == "True", int(hits) if hits != "None" else None


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """A folder with the package, run once: its kernels are kept beside its sources."""
    folder = tmp_path_factory.mktemp("compiled")
    assert Package(folder).run() == (2.0, False, 0)
    return folder


@pytest.fixture
def package(tmp_path, compiled):
    """A copy of it: the place of the sources is no part of what a kernel is kept for."""
    package = Package(tmp_path)
    shutil.rmtree(package.folder)
    shutil.copytree(compiled / "ours", package.folder)
    return package


EDITS = {
    "the kernel called": ("inner.py", "1.0 *", "3.0 *", 6.0),
    "a constant of the package": ("__init__.py", "1.0", "5.0", 10.0),
    "a constant of a module": ("numbers.py", "1.0", "7.0", 14.0),
    "a constant behind a lazy face": ("face/deep.py", "0.0", "0.5", 3.0),
}


@pytest.mark.nightly
@pytest.mark.parametrize("elsewhere", [False, True], ids=["beside the sources", "NUMBA_CACHE_DIR"])
def test_a_kernel_is_kept_where_numba_is_told_to_keep_it(tmp_path, package, elsewhere):
    if elsewhere:
        package.env["NUMBA_CACHE_DIR"] = str(tmp_path / "cache")
        package.forget()
        assert package.run() == (2.0, False, 0)
    assert package.run() == (2.0, True, 1)
    (kept,) = tmp_path.rglob("outer.twice*.nbi")
    assert (tmp_path / "cache" in kept.parents) == elsewhere


@pytest.mark.parametrize("edit", [e if str(e) == "the kernel called" else nightly(e) for e in EDITS], ids=str)
def test_a_kernel_is_compiled_anew_when_anything_compiled_into_it_has_changed(package, edit):
    name, old, new, result = EDITS[edit]
    package.edit(name, old, new)
    assert package.run() == (result, False, 0)


KEEPING = {
    "a source that it does not use": ("stranger.py", "1.0", "2.0"),
    "a comment above it": ("inner.py", "@kernel", "# The lines\n# below move.\n@kernel"),
    "a docstring": ("outer.py", "    return", '    """Return the double."""\n    return'),
    "annotations": ("outer.py", "twice(x)", "twice(x: float) -> float"),
    "another name of the constant's module": ("face/deep.py", "DEEP = 0.0", "DEEP = 0.0\nOTHER = 1.0"),
    "a comment in the compiler's settings": ("compiled/jit.py", "_OPTIONS: Any", "# Settings.\n_OPTIONS: Any"),
}


@pytest.mark.parametrize("edit", [e if e == "a comment above it" else nightly(e) for e in KEEPING], ids=str)
def test_a_kernel_is_kept_when_nothing_compiled_into_it_has_changed(package, edit):
    package.edit(*KEEPING[edit])
    assert package.run() == (2.0, True, 1)


def test_kernels_run_as_plain_python_without_the_compiler(package):
    package.forget()
    assert package.run(NUMBA_DISABLE_JIT="1") == (2.0, True, None)
    assert not list(package.folder.rglob("*.nbi"))


def test_plain_numba_compiles_without_any_change_to_it(package):
    """And keeps its kernels apart: the same file is not valid for both."""
    program = (
        "from numba.core import codegen, serialize\nfrom ours.compiled import jit\nfrom ours.outer import twice\n"
        "replaced = [codegen.JITCPUCodegen._library_class.__module__, twice._compiler.pipeline_class.__module__,"
        " 'ours' * hasattr(serialize._numba_unpickle, 'cache_info')]\n"
        "print(twice(1.0), sum(twice.stats.cache_hits.values()), sum(m.startswith('ours') for m in replaced))"
    )
    assert package.python(program).split() == ["2.0", "1", "3"]
    assert package.python(program, HUMANOID_PLAIN_NUMBA="1").split() == ["2.0", "0", "0"]


@pytest.mark.nightly
def test_kernels_with_checked_indices_are_others(package):
    assert package.run(NUMBA_BOUNDSCHECK="1") == (2.0, False, 0)


@pytest.mark.nightly
def test_a_kernel_kept_for_a_record_that_has_another_name_now_is_compiled_anew(package):
    program = "from ours.records import {0}\nfrom ours.total import total\nprint(total({0}(1.0, 2.0)))"
    assert float(package.python(program.format("Pair"))) == 3.0
    package.edit("records.py", "class Pair", "class Couple")
    assert float(package.python(program.format("Couple"))) == 3.0


LATE = """
from numba.core import codegen
parsed = []
def parse(code, parse=codegen.ll.parse_bitcode):
    parsed.append(len(code))
    return parse(code)
codegen.ll.parse_bitcode = parse
"""


@pytest.mark.nightly
def test_a_kept_kernel_is_loaded_without_its_intermediate_code(package):
    """Until another kernel is compiled that calls it."""
    program = (
        f"{LATE}from ours.compiled.jit import kernel\nfrom ours.inner import once\nfrom ours.outer import twice\n"
        "values, before = (twice(1.0), once(2.0)), list(parsed)\n"
        "@kernel.__globals__['njit']\ndef thrice(x):\n    return 3 * once(x)\n"
        "print(*values, len(before), sum(twice.stats.cache_hits.values()), thrice(1.0), len(parsed))"
    )
    assert package.python("from ours.inner import once\nprint(once(1.0))") == "1.0\n"  # kept by itself
    assert package.python(program).split() == ["2.0", "2.0", "0", "1", "3.0", "1"]


@pytest.mark.nightly
def test_what_a_kept_kernel_defines_is_read_from_its_object_code(package):
    program = (
        "from numba.core import codegen\nfrom ours.outer import twice\nprint(twice(1.0))\n"
        "(loaded,) = [o.library for o in twice.overloads.values()]\n"
        "module, engine = loaded._get_module_for_linking(), loaded.codegen._engine\n"
        "defined = {v.name for v in (*module.functions, *module.global_variables) if not v.is_declaration}\n"
        "entries = {n for n in defined if 'twice' in n and not n.startswith('.const')}\n"
        "print(len(entries), len(entries - engine._defined_symbols))"
    )
    value, counts = package.python(program).splitlines()
    entries, unknown = map(int, counts.split())
    assert float(value) == 2.0 and entries >= 2 and unknown == 0


APART = """
from numba.core import codegen
from ours.callers import first, second, small
from ours.large import large
def library(kernel):
    (made,) = kernel.overloads.values()
    return made.library
def plain(x):
    small = large.py_func(x) + 1.0
    return round(small + large.py_func(2.0 * x), 12), round(small - large.py_func(2.0 * x), 12)
"""


@pytest.mark.nightly
def test_a_large_kernel_is_called_where_it_lies(package):
    """Not copied into its callers, whether it is compiled or loaded, in this process or by others."""
    program = (
        f"{APART}print((round(first(0.7), 12), round(second(0.7), 12)) == plain(0.7))\n"
        "print(library(large).entry != '', library(first).apart == (library(large),) == library(second).apart)\n"
        "code = {k.__name__: len(library(k)._get_compiled_object()) for k in (large, first, second)}\n"
        "print(4 * max(code['first'], code['second']) < code['large'])"
    )
    assert package.python(program).split() == ["True"] * 4
    loaded = (
        f"{APART}print((round(first(0.7), 12), round(second(0.7), 12)) == plain(0.7))\n"
        "print(sum(first.stats.cache_hits.values()), sum(second.stats.cache_hits.values()), len(large.signatures))\n"
        "print(library(first).apart == library(second).apart, len(library(first).apart))\n"  # one for both
        "print(large(0.7) == large.py_func(0.7), library(large) is library(first).apart[0])"
    )
    assert package.python(loaded).split() == ["True", "1", "1", "0", "True", "1", "True", "True"]


@pytest.mark.nightly
def test_only_what_says_so_is_copied_into_its_callers(package):
    """Not what it calls, which numba takes to be like its first caller."""
    program = "from ours.part import called, part, whole\nprint(whole(1.0))\n"
    program += "print(*(next(iter(k.overloads.values())).fndesc.inline for k in (whole, part, called)))"
    assert package.python(program).split() == ["8.0", "False", "True", "False"]


@pytest.mark.nightly
def test_a_caller_compiled_later_is_kept_whole(package):
    """By a process that has loaded the large kernel, from its own file or from that of another caller."""
    assert package.python(f"{APART}print(round(first(0.7), 12) == plain(0.7)[0])") == "True\n"
    later = f"{APART}first(0.7) if {{}} else large(0.7)\nprint(round(second(0.7), 12) == plain(0.7)[1])"
    for by_another in (True, False):
        for kept in package.folder.rglob("callers.second*"):
            kept.unlink()
        assert package.python(later.format(by_another)) == "True\n"
        assert package.python(f"{APART}print(round(second(0.7), 12) == plain(0.7)[1])") == "True\n"


@pytest.mark.nightly
def test_a_caller_is_not_kept_where_the_kernel_that_it_calls_has_changed_on_disk(package):
    """It goes on with what it has loaded; the next process compiles it again."""
    package.python("from ours.large import large\nlarge(0.7)")
    program = (
        f"{APART}import pathlib\nlarge(0.7)\n"
        "for kept in pathlib.Path(large.stats.cache_path).glob('large.large*'):\n    kept.unlink()\n"
        "print(round(second(0.7), 12) == plain(0.7)[1])"
    )
    assert package.python(program) == "True\n" and not list(package.folder.rglob("callers.second*.nbc"))
    assert package.python(f"{APART}print(round(second(0.7), 12) == plain(0.7)[1])") == "True\n"
    assert list(package.folder.rglob("callers.second*.nbc"))


def test_an_error_raised_in_a_large_kernel_comes_through_its_callers(package):
    program = f"{APART}\ntry:\n    first(-1.0)\nexcept ValueError as e:\n    print(e)"
    assert [package.python(program) for _ in range(2)] == ["below zero\n"] * 2


def test_somebody_elses_kernel_may_call_a_large_one(package):
    head = "import numba\nfrom ours.large import large\n\n"
    body = "@numba.njit(cache=True)\ndef theirs(x):\n    return large(x) * 2.0\n"
    (package.folder.parent / "theirs.py").write_text(head + body)
    run = "from theirs import theirs\nprint(theirs(0.7), sum(theirs.stats.cache_hits.values()))"
    (value, hits), (again, found) = (package.python(run).split() for _ in range(2))
    assert value == again and (hits, found) == ("0", "1")


INTERRUPTS = """
import signal
import numpy as np
from ours.halves import halves, same

class Interrupt(Exception):
    pass

def interrupt(*_):
    raise Interrupt

x, count = np.array([2.0, 4.0]), 0
halves(x), same(x)
signal.signal(signal.SIGALRM, interrupt)
while count < 2000:
    try:
        signal.setitimer(signal.ITIMER_REAL, 5e-5)
        while True:
            halves(same(x))
    except Interrupt:
        count += 1
print(*halves(x))
"""


def test_an_interrupt_among_calls_of_kernels_is_raised_and_no_crash(package):
    """Where a kernel returns a record numba asks for its class, and took an interrupt of that for an answer."""
    assert package.python(INTERRUPTS) == "1.0 2.0\n"


COUNTING = {"adds": False, "adds_rows": False} | dict.fromkeys(
    ("row", "adds_a_row", "makes", "doubles", "copies", "both"), True
)


def test_only_kernels_that_declare_it_count_references_to_arrays(package):
    program = "import numpy as np\nfrom ours import arrays\n" + f"names = {tuple(COUNTING)}\n"
    program += "A = np.array([[1.0, 2.0], [3.0, 4.0]])\nkernels = [getattr(arrays, n) for n in names]\n"
    program += "values = [k(*([A[0], A[1]] if k is arrays.adds else [A])) for k in kernels]\n"
    program += "print({n: k.overloads[k.signatures[0]].target_context.enable_nrt for n, k in zip(names, kernels)})"
    assert eval(package.python(program)) == COUNTING


def test_a_kernel_that_owns_an_array_without_declaring_it_is_refused(package):
    """The view returned by `row` would never be released, and a tuple with an array neither."""
    text = (package.folder / "arrays.py").read_text()
    (package.folder / "arrays.py").write_text(text.replace("(allocates=True)", ""))
    (package.folder / "callers_of_rows.py").write_text(
        "from ours.arrays import adds\nfrom ours.compiled.jit import kernel\n\n"
        "@kernel(allocates=True)\ndef row(A):\n    return A[1]\n\n"
        "@kernel\ndef adds_a_row(A):\n    return adds(row(A), A[0])\n"
    )
    program = """
import numpy as np
from numba.core.errors import NumbaError
from ours import arrays, callers_of_rows

for k in (arrays.row, arrays.makes, arrays.doubles, arrays.copies, arrays.both, callers_of_rows.adds_a_row):
    for _ in range(2):
        try:
            print(k.__name__, k(np.ones((2, 2))))
        except NumbaError as e:
            print(k.__name__, "declare `allocates=True`" in str(e))
"""
    lines = package.python(program).splitlines()
    assert lines[-4:] == ["both True", "both True", "adds_a_row True", "adds_a_row True"]
    assert all(line.split()[1] in ("True", "False") for line in lines) and len(lines) == 12


@pytest.mark.nightly
def test_no_array_is_lost_or_kept_by_kernels(package):
    """Compiled and read again: all arrays that kernels made are gone, those given are held by nobody else."""
    program = """
import gc, sys
import numpy as np
from numba.core.runtime import rtsys
from ours import arrays as a

A = np.array([[1.0, 2.0], [3.0, 4.0]])

def call_all():
    a.adds(A[0], A[1])
    for f in (a.adds_rows, a.adds_a_row, a.makes, a.doubles, a.copies, a.both, a.row):
        f(A)

call_all()
held, before = sys.getrefcount(A), rtsys.get_allocation_stats()
for _ in range(100):
    call_all()
after = rtsys.get_allocation_stats()
made, freed = after.alloc - before.alloc, after.free - before.free
print(sys.getrefcount(A) - held, made > 500, made - freed)
kept, values = a.row(A), A[1].tolist()
del A
gc.collect()
others = [np.full((2, 2), 7.0 * k) for k in range(1000)]
print(kept.tolist() == values)
"""
    for _ in range(2):
        held, made, lost, kept = package.python(program, NUMBA_NRT_STATS="1").split()
        assert (held, made, lost, kept) == ("0", "True", "0", "True")


@pytest.mark.nightly
def test_indices_count_from_the_end_only_as_written(package):
    """That numbers lie side by side is seen by the compiler only where no index can mean another one."""
    program = """
import numba
import numpy as np
from ours.indices import computed, written

@numba.njit
def theirs(a, i):
    return a[0, i]

a = np.array([[1.0, 2.0], [3.0, 4.0]])
print(written(a) == 3.0 + 4.0 + 4.0 + 12.0, computed(a, 1), theirs(a, -1))
try:
    print(computed(a, -1))
except IndexError:
    print("refused")
"""
    assert package.python(program, NUMBA_BOUNDSCHECK="1").split() == ["True", "12.0", "12.0", "refused"]
