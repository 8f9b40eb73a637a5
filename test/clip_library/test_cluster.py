"""A Dask cluster of a scheduler and worker processes, one of them killed in the middle: nothing is lost."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("distributed", reason="needs Dask: pip install 'humanoid_control[cluster]'")

from humanoid_control.cli.main import main
from humanoid_control.clip_library import Cluster, LibrarySettings, WorkerRobot, cluster, find_clips, library_jobs, work
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.paths import share_dir
from test.dance_library import write_library
from test.places import port

CLIPS, FRAMES = 9, 200


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return write_library(tmp_path_factory.mktemp("clips") / "lib", CLIPS, FRAMES)


@pytest.fixture(scope="module")
def known(library, tmp_path_factory):
    out = tmp_path_factory.mktemp("known") / "out"
    assert main(["retarget", str(library), "--robot", "hrp2", "--whole-body", "-o", f"{out}/"]) == 0
    return outputs(out)


def outputs(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted((folder / "hrp2").rglob("*.npz"))}


class DaskCluster:
    """Real processes, a scheduler and a worker; the worker runs in a folder where nothing of the library lies."""

    def __init__(self, folder):
        self.folder, self.address = folder, f"tcp://127.0.0.1:{port(7)}"
        place = [f"--port={port(7)}", "--no-dashboard", "--no-show"]
        self.scheduler = self._start("scheduler", "--host=127.0.0.1", *place)
        self.workers = [self.add_worker()]

    def _start(self, kind, *args):
        folder = self.folder / f"{kind}_{time.monotonic_ns()}"
        folder.mkdir()
        with (folder / "log").open("w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *args],
                cwd=folder,
                stdout=log,
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    def add_worker(self):
        place = ["--no-nanny", "--no-dashboard", "--nthreads=1", "--local-directory=."]
        return self._start("worker", self.address, *place)

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def dask(tmp_path_factory):
    it = DaskCluster(tmp_path_factory.mktemp("cluster"))
    try:
        end = time.monotonic() + 60
        while True:
            try:
                with_workers = Cluster(it.address)
                if with_workers.workers == 1:
                    with_workers.close()
                    break
                with_workers.close()
            except EnvironmentProblem as e:
                assert "start" in str(e), "it says how to start what is missing"
            assert time.monotonic() < end, "the cluster does not start"
        yield it
    finally:
        it.close()


@pytest.mark.nightly
def test_a_worker_that_is_killed_costs_nothing(dask, library, known, tmp_path):
    dask.workers.append(dask.add_worker())
    out = tmp_path / "out"
    argv = ["retarget", library, "--robot", "hrp2", "--whole-body", "-o", f"{out}/", "--scheduler", dask.address]
    with (tmp_path / "log").open("w") as log:
        run = subprocess.Popen(
            [sys.executable, "-m", "humanoid_control.cli.main", *map(str, argv)], stdout=log, stderr=log
        )
    records, end = out / ".library" / "records", time.monotonic() + 600
    while not records.is_dir() or len(list(records.iterdir())) < 3:
        assert run.poll() is None and time.monotonic() < end, (tmp_path / "log").read_text()
        time.sleep(0.02)
    dask.workers[0].send_signal(signal.SIGKILL)
    dask.workers[0].wait()
    assert len(list(records.iterdir())) < CLIPS, "it was in the middle"
    assert run.wait(90) == 0, (tmp_path / "log").read_text()
    assert outputs(out) == known
    dask.workers[0] = dask.add_worker()
    assert main([str(a) for a in argv]) == 0, "and nothing is left to be done"


def test_results_go_to_an_address_and_own_robots_travel(dask, library, known, tmp_path, capfd):
    for name in ("hrp2.urdf", "hrp2.yaml", "hrp2.drives.yaml"):
        if (share_dir() / "urdf" / name).exists():
            shutil.copy(share_dir() / "urdf" / name, tmp_path / name.replace("hrp2", "mine"))
    url, some = f"file://{tmp_path}/far/out", tmp_path / "some.txt"
    some.write_text("\n".join(str(p) for p in sorted(library.rglob("*.trc"))[:2]) + f"\n{tmp_path}/none.bvh\n")
    argv = ["retarget", str(some), "--robot", str(tmp_path / "mine.urdf"), "--whole-body", "-o", url]
    argv += ["--scheduler", dask.address, "--json"]
    assert main(argv) == 1
    told = json.loads(capfd.readouterr().out)
    assert told["done"] == 2 and told["failed"] == 1 and "No such file" in told["rows"][-1]["reason"] + str(told)
    found = sorted((tmp_path / "far" / "out" / "hrp2").rglob("*.npz"))
    assert {p.read_bytes() for p in found} <= set(known.values()) and len(found) == 2
    assert (tmp_path / "far" / "out" / "manifest.csv").is_file()


def test_workers_with_another_package_are_refused(dask, monkeypatch):
    monkeypatch.setattr(work, "__version__", "0.0.1")
    with pytest.raises(EnvironmentProblem, match=r"has humanoid_control .*, but this machine has 0\.0\.1"):
        Cluster(dask.address)


def test_no_scheduler_is_one_line_with_what_to_start(tmp_path, capfd, monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT_TIME", 0.5)
    (tmp_path / "clips.txt").write_text("dance\n")
    argv = [
        "retarget",
        str(tmp_path / "clips.txt"),
        "-o",
        f"{tmp_path}/out/",
        "--scheduler",
        f"tcp://127.0.0.1:{port(9)}",
    ]
    assert main(argv) == 2
    said = capfd.readouterr().err.strip()
    assert "start one with `dask scheduler`" in said and len(said.splitlines()) == 1
    assert Path(tmp_path / "out").is_dir() is False or not list((tmp_path / "out").rglob("*.npz"))


def test_a_scheduler_that_goes_ends_the_run_in_one_line(dask, library):
    """The last one: it ends the cluster."""
    connected = Cluster(dask.address)
    jobs, _ = library_jobs(find_clips(str(library)), [WorkerRobot.of("hrp2")], LibrarySettings(whole_body=True))
    outcomes = connected.outcomes(jobs)
    next(outcomes)
    dask.scheduler.kill()
    with pytest.raises(EnvironmentProblem, match="stopped responding"):
        list(outcomes)
    connected.close()
