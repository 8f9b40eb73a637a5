"""No kernel of this package outlives an edit that changes its results in plain Python."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from humanoid_control.compiled import stamp as kernel_stamp
from test.mutants import mutants_of

PACKAGE = Path(kernel_stamp.__file__).parents[1]
EDITS = int(os.environ.get("EDITS", "200"))
# Plain Python: calls of kernels are recorded in ticks and steps of several solvers, with copies of the arguments.
RECORD = """
import copy, pickle, sys
import numpy as np
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from humanoid_control.ik import FrameTask, PostureTask, WholeBodyIk
from humanoid_control.multibody import SOLVERS, ForwardDynamics, Model, from_pinocchio
from humanoid_control.numerics.butterworth import filtered_both_ways, low_pass
from humanoid_control.robots import load_robot

calls, home = {}, str(Path(sys.argv[1], "humanoid_control"))

def watch(frame, event, _):
    code = frame.f_code
    if event != "call" or not code.co_filename.startswith(home):
        return
    name = frame.f_globals["__name__"], code.co_qualname if hasattr(code, "co_qualname") else code.co_name
    function = frame.f_globals.get(name[1])
    if getattr(function, "__code__", None) is code and len(calls.setdefault(name, [])) < 2:
        given = [frame.f_locals[each] for each in code.co_varnames[: code.co_argcount]]
        try:
            calls[name].append(pickle.dumps(given))
        except Exception:
            calls[name].append(None)

robot = load_robot("hrp2", "fixed")
q = robot.q()
hand = FrameTask(robot, "r_wrist")
hand.set_target_from(q)
hand.X_target.translation += [0.3, 0.0, 0.2]
solver = WholeBodyIk(robot)
sys.setprofile(watch)
for _ in range(3):
    q = solver.step(q, [hand, PostureTask(robot, weight=0.01)], dt=0.02).q
for each in SOLVERS:
    ForwardDynamics(Model(from_pinocchio(robot.model).bodies), each)(robot.q(), np.full(robot.nv, 0.1))
filtered_both_ways(np.random.default_rng(1).normal(size=(20, 3)), low_pass(5.0, 0.02), 0)
sys.setprofile(None)
pickle.dump({name: [c for c in many if c] for name, many in calls.items()}, open(sys.argv[2], "wb"))
print(len(calls))
"""
# It forks for each line that it reads, and prints the results (without the compiler) or the stamps of recorded calls.
SERVER = """
import copy, hashlib, importlib, json, os, pickle, signal, sys
import coal, numba, numpy, pinocchio, scipy.linalg, scipy.optimize, scipy.sparse, yaml
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
numpy.seterr(all="ignore")
calls = pickle.load(open(sys.argv[2], "rb"))

def found():
    from numba.core.dispatcher import Dispatcher
    out = {}
    for (module, name), many in calls.items():
        key = f"{module}.{name}"
        try:
            f = getattr(importlib.import_module(module), name)
        except Exception as e:
            out[key] = repr(e)
            continue
        if not numba.config.DISABLE_JIT:
            if isinstance(f, Dispatcher):
                from humanoid_control.compiled.stamp import stamp
                out[key] = stamp(f)
            continue
        digests = []
        for given in many:
            try:
                args = pickle.loads(given)
                digests.append(hashlib.sha256(pickle.dumps((f(*args), args))).hexdigest())
            except Exception as e:
                digests.append(type(e).__name__)
        out[key] = digests
    return out

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # an edited loop may have no end
        try:
            print(json.dumps(found()), flush=True)
        except BaseException as e:
            print(json.dumps({"error": repr(e)}), flush=True)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        print(json.dumps({"error": "no end"}), flush=True)
"""


class Server:
    """Processes that look at a copy of the package again and again."""

    def __init__(self, folder, calls, **env):
        env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | env
        command = [sys.executable, "-W", "ignore", "-c", SERVER, str(folder), str(calls)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)

    def look(self):
        """Return what a new process finds in the copy as it is."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


@pytest.mark.thorough
def test_no_kernel_of_this_package_outlives_a_change_of_its_results(tmp_path):
    folder, calls = tmp_path / "copy", tmp_path / "calls"
    for name in ("humanoid_control", "config", "urdf"):
        shutil.copytree(PACKAGE.parent / name, folder / name, ignore=shutil.ignore_patterns("*.nb[ic]"))
    shutil.copy(PACKAGE.parent / "package.xml", folder)
    plain = {"NUMBA_DISABLE_JIT": "1"}
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | plain
    subprocess.run([sys.executable, "-W", "ignore", "-c", RECORD, str(folder), str(calls)], env=env, check=True)
    results, stamps = Server(folder, calls, **plain), Server(folder, calls)
    results_before, stamps_before = results.look(), stamps.look()
    assert results.look() == results_before and stamps.look() == stamps_before
    kernels = stamps_before.keys() & results_before.keys()
    assert len(kernels) > 100
    files = sorted({"/".join(name.split(".")[:-1]) + ".py" for name in kernels})
    places = [(file, edit) for file in files for edit in mutants_of((folder / file).read_text(), file)]
    random.Random(int(os.environ.get("SEED", "1"))).shuffle(places)
    changes, dropped = 0, []
    try:
        for file, edit in places[:EDITS]:
            path, times = folder / file, (folder / file).stat()
            text = path.read_text()
            path.write_text(edit.applied(text))
            ours, theirs = stamps.look(), results.look()
            path.write_text(text)
            os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
            dropped.append(sum(ours.get(name) != stamps_before[name] for name in kernels))
            if "error" in theirs or "error" in ours:
                continue  # the edited package cannot be imported, or has no end
            changed = {name for name in kernels if theirs[name] != results_before[name]}
            changes += bool(changed)
            kept = {name for name in changed if ours[name] == stamps_before[name]}
            assert not kept, (edit.key, sorted(kept))
    finally:
        results.close()
        stamps.close()
    mean = sum(dropped) / len(dropped)
    print(f"{len(kernels)} kernels, {len(dropped)} edits, {changes} change results, {mean:.1f} dropped in the mean")
    assert changes > EDITS // 8
