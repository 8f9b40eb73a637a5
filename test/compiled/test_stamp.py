"""The stamp of a kernel changes when something changes that is compiled into it, and for nothing else."""

import ast
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from humanoid_control.compiled import stamp as kernel_stamp
from humanoid_control.compiled.jit import kernel
from humanoid_control.compiled.settings import config
from test.mutants import Mutant, mutants_of
from test.robots_under_test import nightly

pytestmark = pytest.mark.skipif(config.DISABLE_JIT, reason="nothing is compiled, and nothing has a stamp")
COMPILED = Path(kernel_stamp.__file__).parent
PACKAGE = COMPILED.parent
EDITS = [25, nightly(200)]
SOURCES = {
    "__init__.py": "",
    "lazy.py": "",
    "constants.py": """
        import numpy as np

        SCALE, SHIFT = 2.0, 3.0
        HALF = SCALE / 4.0
        COUNT = 3
        TABLE = np.array([1.0, 2.0 + SHIFT, 4.0])
        PAIR = (0.25, (1.5, 2))


        def weights(n):
            return tuple(0.5 * k + 1.0 for k in range(n))


        WEIGHTS = weights(3)
        UNUSED = 7.0
        """,
    "records.py": """
        from enum import IntEnum
        from typing import NamedTuple


        class Mode(IntEnum):
            HOLD = 1
            MOVE = 2


        class Line(NamedTuple):
            slope: float
            start: float = 0.5

            def length(self):
                return self.slope * 9.0


        class Other(NamedTuple):
            a: float = 1.0
        """,
    "taught.py": """
        from numba import types
        from numba.extending import lower_builtin, type_callable

        FACTOR = 3.0


        def thrice(x):
            return x * 3.0


        @type_callable(thrice)
        def _type(context):
            return lambda x: types.float64


        @lower_builtin(thrice, types.Float)
        def _lower(context, builder, signature, args):
            return builder.fmul(args[0], context.get_constant(types.float64, FACTOR))
        """,
    "face/__init__.py": """
        import importlib


        def __getattr__(name):
            module = {"low": "first", "high": "second"}[name]
            return getattr(importlib.import_module("small.face." + module), name)
        """,
    "face/first.py": """
        from small.compiled.jit import kernel


        @kernel
        def low(x):
            return x - 4.0 if x > 1.0 else x * 0.5
        """,
    "face/second.py": """
        from small.compiled.jit import kernel


        @kernel
        def high(x):
            return max(x, 0.0) + 2.0 * x
        """,
    "inner.py": """
        from small import constants
        from small.constants import COUNT, HALF, PAIR, TABLE, WEIGHTS
        from small.face import low
        from small.compiled.jit import inlined, kernel
        from small.records import Line, Mode
        from small.taught import thrice


        @inlined
        def cube(x):
            return x * x * x


        @kernel
        def at(line, x, gain=2.5):
            return line.slope * x * gain + line.start


        @kernel
        def summed(x):
            total = 0.0
            for k in range(COUNT):
                total += TABLE[k] * x - WEIGHTS[k]
            return total


        @kernel
        def chosen(x, mode):
            if mode == Mode.MOVE:
                return x + constants.SCALE
            return x - HALF


        @kernel
        def composed(x):
            y = at(Line(x), x)
            return cube(y) + PAIR[1][0] * low(x)


        @kernel
        def taught(x):
            return thrice(x) + 1.0


        def made(power):
            @kernel
            def raised(x):
                return x**power + 0.5 * power

            return raised


        square = made(2)
        """,
    "outer.py": """
        from small.inner import chosen, composed, square, summed
        from small.compiled.jit import kernel


        @kernel
        def outer(x):
            return composed(x) * 2.0 + summed(x)


        @kernel
        def again(x, n):
            if n <= 0:
                return x
            return again(0.5 * x, n - 1) + 1.0


        @kernel
        def other(x):
            return chosen(x, 1) - square(x)
        """,
}
CALLS = {
    "face.first.low": [(0.3,), (1.7,)],
    "face.second.high": [(0.3,), (-1.7,)],
    "inner.cube": [(0.3,), (1.7,)],
    "inner.at": [((0.3, 0.7), 1.1)],
    "inner.summed": [(0.3,)],
    "inner.chosen": [(0.3, 1), (0.3, 2)],
    "inner.composed": [(0.3,), (1.7,)],
    "inner.taught": [(0.3,)],
    "inner.square": [(0.3,)],
    "outer.outer": [(0.3,), (1.7,)],
    "outer.again": [(0.3, 2), (0.4, 0)],
    "outer.other": [(0.3,)],
}
# Reads a list of folders, and prints for each what a new process finds in the package there: without the compiler the
# results of the calls, with it the stamps. The compiler is imported once, and each folder has a fork of its own.
SERVER = """
import importlib, json, os, sys
import numba, numpy
from numba.core.dispatcher import Dispatcher
from numba.np import arrayobj
sys.dont_write_bytecode = True
package, calls = json.loads(sys.stdin.readline())

def result(f, args):
    from small.records import Line
    try:
        return repr(f(*(Line(*a) if isinstance(a, list) else a for a in args)))
    except Exception as e:
        return repr(e)

def found(folder):
    sys.path.insert(0, folder)
    out = {}
    for name, many in calls.items():
        module, _, kernel = name.rpartition(".")
        try:
            f = getattr(importlib.import_module(f"{package}.{module}"), kernel)
        except Exception as e:
            out[name] = repr(e)
            continue
        if numba.config.DISABLE_JIT:
            out[name] = [result(f, args) for args in many]
        else:
            made = importlib.import_module(f"{package}.compiled.stamp")
            out[name] = made.stamp(f) + made.stamp_of(*(cell.cell_contents for cell in f.py_func.__closure__ or ()))
    return out

for folder in sys.stdin:
    if os.fork() == 0:
        print(json.dumps(found(folder.strip())), flush=True)
        os._exit(0)
    os.wait()
"""


class Small:
    """A small package with kernels of every kind, in a folder of its own."""

    def __init__(self, folder: Path):
        self.folder = folder / "small"
        for name, text in SOURCES.items():
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / name).write_text(textwrap.dedent(text).lstrip())
        (self.folder / "compiled").mkdir()
        for path in COMPILED.glob("*.py"):
            text = path.read_text().replace("from humanoid_control", "from small")
            (self.folder / "compiled" / path.name).write_text(text)

    def edited(self, folder: Path, name: str, text: str) -> Path:
        """Make a copy in which one file has another text."""
        shutil.copytree(self.folder, folder / "small")
        (folder / "small" / name).write_text(text)
        return folder


def edits_of(text: str, name: str) -> list[Mutant]:
    """Return the changes that mutation makes of a text, and other numbers for its numbers."""
    found, starts = mutants_of(text, name), [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            begin = starts[node.lineno - 1] + node.col_offset
            end = starts[node.end_lineno - 1] + node.end_col_offset
            for new in (node.value + 2, 3 * node.value + 0.25, float(node.value)):
                found.append(Mutant(name, begin, end, str(new), node.lineno, text[begin:end]))
    return found


def asked(folders, package="small", calls=CALLS, **env):
    """Return what processes find in the package in each of the folders."""
    lines = [json.dumps([package, calls]), *map(str, folders)]
    done = subprocess.run(
        [sys.executable, "-c", SERVER], input="\n".join(lines), env=os.environ | env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return Small(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize("count", EDITS)
def test_no_kernel_outlives_a_change_of_its_results(small, tmp_path, count):
    """Edit random places: constants, operators, calls, conditions, returns."""
    places = [(name, edit) for name in sorted(SOURCES) for edit in edits_of((small.folder / name).read_text(), name)]
    random.Random(1).shuffle(places)
    folders = [small.folder.parent]
    for k, (name, mutant) in enumerate(places[:count]):
        folders.append(small.edited(tmp_path / str(k), name, mutant.applied((small.folder / name).read_text())))
    assert len(places) >= count
    stamps, results = asked(folders), asked(folders, NUMBA_DISABLE_JIT="1")
    changes = 0
    for (name, mutant), ours, theirs in zip(places, stamps[1:], results[1:], strict=False):
        for each in CALLS:
            if theirs[each] != results[0][each]:
                changes += 1
                assert ours[each] != stamps[0][each], (each, name, mutant.key)
    assert changes > count


ONE_EDIT = [  # file, old text, new text, kernels that are compiled again
    ("constants.py", "UNUSED = 7.0", "UNUSED = 8.0", ""),
    ("constants.py", "SCALE, SHIFT = 2.0", "SCALE, SHIFT = 2.5", "inner.chosen outer.other"),
    ("constants.py", "0.5 * k", "0.25 * k", "inner.summed outer.outer"),
    ("constants.py", "2.0 + SHIFT", "2.5 + SHIFT", "inner.summed outer.outer"),
    ("constants.py", "COUNT = 3", "COUNT = 3.0", "inner.summed outer.outer"),
    ("records.py", "MOVE = 2", "MOVE = 3", "inner.chosen outer.other"),
    ("records.py", "start: float = 0.5", "start: float = 1.5", "inner.composed outer.outer"),
    ("records.py", "slope: float", "slope: int", "inner.composed outer.outer"),
    ("records.py", "9.0", "8.0", ""),
    ("records.py", "a: float = 1.0", "a: float = 2.0", ""),
    ("face/second.py", "2.0", "3.0", "face.second.high"),
    ("face/first.py", "4.0", "3.0", "face.first.low inner.composed outer.outer"),
    ("taught.py", "FACTOR = 3.0", "FACTOR = 4.0", "inner.taught"),
    ("inner.py", "gain=2.5", "gain=3.5", "inner.at inner.composed outer.outer"),
    ("inner.py", "(line, x, gain", "(line, where, gain", "inner.at inner.composed outer.outer"),
    ("inner.py", "made(2)", "made(3)", "inner.square outer.other"),
    ("inner.py", "@inlined", "@kernel", "inner.cube inner.composed outer.outer"),
    ("inner.py", "total", "value", ""),
    ("inner.py", "(x, mode)", "(x: float, mode: int) -> float", ""),
    ("compiled/linking.py", "_LARGE = ", "_LARGE = 1 + ", " ".join(CALLS)),
    ("compiled/pipeline.py", "literal_value < 0", "literal_value < 1", " ".join(CALLS)),
    ("compiled/linking.py", "  # kind of section", "  # section", ""),
]


def test_an_edit_drops_the_kernels_that_contain_it(small, tmp_path):
    folders = [small.folder.parent]
    for k, (name, old, new, _) in enumerate(ONE_EDIT):
        text = (small.folder / name).read_text()
        assert old in text
        folders.append(small.edited(tmp_path / str(k), name, text.replace(old, new)))
    before, *after = asked(folders)
    for (name, old, new, kernels), stamps in zip(ONE_EDIT, after, strict=True):
        dropped = {each for each in CALLS if stamps[each] != before[each]}
        assert dropped == set(kernels.split()), (name, old, new)


def test_variables_of_an_enclosing_function_tell_kernels_apart():
    def made(power):
        @kernel
        def raised(x):
            return x**power

        return raised

    two, three = made(2), made(3)
    assert kernel_stamp.stamp_of(two) != kernel_stamp.stamp_of(three)
    assert kernel_stamp.stamp_of(two) == kernel_stamp.stamp_of(made(2))


@pytest.mark.parametrize(
    "one, other", [(1, 1.0), (1, True), (0.0, -0.0), ("1", 1), ((1, 2), (1, 2.0)), (1e16, 1e16 + 2)]
)
def test_values_that_compile_differently_differ(one, other):
    assert kernel_stamp.stamp_of(one) != kernel_stamp.stamp_of(other)
    assert kernel_stamp.stamp_of(one) == kernel_stamp.stamp_of(one)


# -------- this package

ALL_STAMPS = """
import importlib, json, re, sys
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import humanoid_control
assert humanoid_control.__path__[0].startswith(sys.argv[1])
from numba.core.dispatcher import Dispatcher
found = {}
if len(sys.argv) > 2:  # a process that has more modules than others, imported in another order
    import warnings
    warnings.simplefilter("ignore")
    import numpy.core, numpy.testing, numpy.ma, scipy.spatial
    import evidence.studies, evidence.benchmarks
for path in sorted(__import__("pathlib").Path(humanoid_control.__path__[0]).rglob("*.py"), reverse=len(sys.argv) > 2):
    if re.search(r"^@(kernel|inlined)\\b", path.read_text(), re.MULTILINE):
        name = ".".join(path.relative_to(sys.argv[1]).with_suffix("").parts).removesuffix(".__init__")
        module = importlib.import_module(name)
        for key, value in vars(module).items():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                found[f"{name}.{key}"] = value
from humanoid_control.compiled.stamp import stamp
print(json.dumps({name: stamp(kernel) for name, kernel in found.items()}))
"""


def all_stamps(folder, *more):
    """Return the stamps of all kernels of a copy of this package; more arguments: in a process with more modules."""
    command, env = (
        [sys.executable, "-c", ALL_STAMPS, str(folder)],
        {k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    done = subprocess.run(command, capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


class Undocumented(ast.NodeTransformer):
    """Removes docstrings; functions and classes without one get one."""

    def visit(self, node):
        self.generic_visit(node)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)):
            if ast.get_docstring(node) is not None:
                node.body = node.body[1:] or ([] if isinstance(node, ast.Module) else [ast.Pass()])
            elif not isinstance(node, ast.Module):
                node.body.insert(0, ast.Expr(ast.Constant("A docstring.")))
        return node


@pytest.mark.nightly
def test_no_comment_and_no_docstring_drops_a_kernel(tmp_path):
    """Take all docstrings from the whole package, give docstrings to all that had none, and move all lines.

    Both copies are unparsed: since Python 3.13 an expression on two lines has other instructions than on one.
    """
    kept = shutil.ignore_patterns("__pycache__")
    for folder in ("as_is", "edited"):
        shutil.copytree(PACKAGE, tmp_path / folder / PACKAGE.name, ignore=kept)
        for path in (tmp_path / folder).rglob("*.py"):
            tree = ast.parse(path.read_text())
            if folder == "edited":
                tree = ast.fix_missing_locations(Undocumented().visit(tree))
            path.write_text("\n\n" * (folder == "edited") + ast.unparse(tree))
    before, after = all_stamps(tmp_path / "as_is"), all_stamps(tmp_path / "edited")
    assert len(before) > 700
    assert [name for name in before if before[name] != after.get(name)] == []


def test_stamps_are_the_same_whatever_else_a_process_has_imported():
    assert all_stamps(PACKAGE.parent) == all_stamps(PACKAGE.parent, "more")
