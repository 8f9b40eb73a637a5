"""`humanoid warm`, and when it is said that something is compiled."""

import numba
import pytest

from humanoid_control import warm_up
from humanoid_control.warm_up import GROUPS, compile_first, compile_groups, report_compiling


def test_what_is_compiled_is_said_to_be_ready(humanoid):
    compile_first("retargeting")
    done = humanoid("warm", "retargeting")
    assert done.returncode == 0 and done.stdout == "retargeting: ready\n"
    assert humanoid("warm", "retargeting", "--check").returncode == 0


def test_what_is_not_compiled_is_found_out(humanoid, tmp_path):
    """In a folder of kernels that is empty."""
    done = humanoid.fresh("warm", "--check", NUMBA_CACHE_DIR=str(tmp_path / "kernels"))
    assert done.returncode == 1 and done.stdout.splitlines() == [f"{group}: not compiled yet" for group in GROUPS]


@pytest.mark.thorough
def test_what_is_not_compiled_is_compiled(humanoid, tmp_path):
    empty = {"NUMBA_CACHE_DIR": str(tmp_path / "kernels")}
    groups = ("hardware", "simulation")
    told = humanoid.fresh("warm", *groups, timeout=600, **empty).stdout
    assert "hardware: compiled\n" in told and "simulation: compiled\n" in told
    assert humanoid.fresh("warm", *groups, "--check", **empty).stdout == "hardware: ready\nsimulation: ready\n"


def test_a_group_that_cannot_be_compiled_is_told_of_and_the_others_are():
    failed = compile_groups(["of_nobody", "retargeting"], quiet=True)
    assert list(failed) == ["of_nobody"] and "No module named" in failed["of_nobody"]


def test_compiling_is_told_once_and_only_where_it_happens():
    def double(x):
        return 2 * x

    said = []
    kernel = numba.njit(double)
    with report_compiling(said.append, "compiling"):
        pass
    assert not said
    with report_compiling(said.append, "compiling"):
        kernel(1), kernel(1.0)
    assert said == ["compiling"]
    with report_compiling(said.append, "compiling"):
        kernel(1)
    kernel(1j)
    assert said == ["compiling"]


def test_compiling_that_takes_long_is_told_of_again(monkeypatch):
    def thrice(x):
        return 3 * x

    monkeypatch.setattr(warm_up, "TELL_EVERY", 0.0)
    said = []
    with report_compiling(said.append), report_compiling(said.append, "inside"):
        numba.njit(thrice)(1), numba.njit(thrice)(1.0)
    assert said[0] == warm_up.COMPILING and said[1].startswith("still compiling: 2 kernels in ") and len(said) == 2
