"""Execution on a Dask cluster without a shared disk."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from typing import Any

from humanoid_control.clip_library.work import BAD_INPUT, DIED, UNEXPECTED, ClipOutcome, Job, do_job, failure, versions
from humanoid_control.errors import ConfigError, EnvironmentProblem, HumanoidError, first_line, require_extra, shown

ADDRESS = re.compile(r"^(tcp|tls|ws|wss|ucx|ucxx)://[^/\s]+$")
CONNECT_TIME = 10.0  # [s] for the scheduler's answer
AHEAD = 2  # jobs per thread sent in advance, to hide the network latency
GLANCE = 2.0  # [s] without results before a check for workers
PATIENCE = 120.0  # [s] without workers before the run stops
NO_ANSWER = (TimeoutError, asyncio.TimeoutError)  # two classes before Python 3.11


def check_scheduler(address: str) -> None:
    """Check the scheduler's address, and that Dask is installed.

    Raises:
        ConfigError: if the address is malformed.
        EnvironmentProblem: if Dask is missing.
    """
    if not ADDRESS.match(address):
        raise ConfigError(f"--scheduler {shown(address)}: expected an address such as tcp://host:8786")
    require_extra("cluster")


class Cluster:
    """Workers of a Dask cluster.

    Attributes:
        workers: number of threads at the start.
    """

    def __init__(self, address: str, deliver: str = "") -> None:
        """Connect, and check the package versions of the workers.

        Args:
            deliver: fsspec address to which workers write; empty: results come back.

        Raises:
            ConfigError: if the address is malformed.
            EnvironmentProblem: if the cluster is unusable.
        """
        check_scheduler(address)
        import dask
        from distributed import Client

        dask.config.set({"distributed.comm.timeouts.connect": CONNECT_TIME})
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        warnings.filterwarnings("ignore", message="Sending large graph")
        warnings.filterwarnings("ignore", module="distributed")
        self.address, self.deliver = address, deliver
        try:
            self._client: Any = Client(address, timeout=CONNECT_TIME, set_as_default=False)
        except (OSError, ValueError) as e:
            told = first_line(e) if not isinstance(e, NO_ANSWER) else "no answer"
            raise EnvironmentProblem(
                f"no Dask scheduler at {address} ({told}): start one with `dask scheduler`, workers with `dask worker "
                f"{address}`"
            ) from None
        try:
            self.workers = self._threads()
            self._check_workers()
        except BaseException:
            self.close()
            raise

    @property
    def delivers(self) -> bool:
        return bool(self.deliver)

    def close(self) -> None:
        """Disconnect; the cluster keeps running."""
        with contextlib.suppress(Exception):
            self._client.close(timeout=5)

    def _threads(self) -> int:
        """Return the number of worker threads."""
        try:
            return int(sum(self._client.nthreads().values()))
        except (OSError, *NO_ANSWER, CancelledError):
            raise self._gone() from None

    def _check_workers(self) -> None:
        if not self.workers:
            raise EnvironmentProblem(
                f"the scheduler at {self.address} has no workers: start some with `dask worker {self.address}`"
            )
        mine = versions()
        try:
            theirs = self._client.run(versions, on_error="return")
        except Exception as e:
            theirs = {self.address: e}
        for worker, found in theirs.items():
            if isinstance(found, Exception):
                raise EnvironmentProblem(
                    f"the worker {worker} cannot load humanoid_control ({first_line(found)}): install the same package"
                )
            _check_versions(worker, mine, found)

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[ClipOutcome]:
        """Yield the outcomes as jobs finish.

        Raises:
            EnvironmentProblem: if scheduler or workers are gone, or versions differ.
        """
        from distributed import wait

        waiting, running, mine = iter(jobs), dict[Any, Job](), versions()
        more, alone = True, 0.0
        try:
            while more or running:
                threads = max(self._threads(), 1)
                while more and len(running) < (AHEAD + 1) * threads:
                    job = next(waiting, None)
                    if job is None:
                        more = False
                        break
                    try:
                        sent = self._packed(job)
                    except HumanoidError as e:
                        yield failure(job, BAD_INPUT, str(e))
                        continue
                    running[self._submit(sent, mine)] = job
                if not running:
                    continue
                try:
                    with self._client.as_current():
                        done = wait(list(running), timeout=GLANCE, return_when="FIRST_COMPLETED").done
                except NO_ANSWER:
                    alone = self._look_for_workers(alone)
                    continue
                except (OSError, CancelledError):
                    raise self._gone() from None
                alone = 0.0
                for future in done:
                    outcome = self._outcome(future, running[future])
                    del running[future]
                    future.release()
                    yield outcome
        finally:
            with contextlib.suppress(Exception):
                self._client.cancel(list(running), force=True)

    def _packed(self, job: Job) -> Job:
        return replace(job, files=job.clip.packed() or None, deliver=self.deliver)

    def _submit(self, job: Job, mine: dict[str, str]) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return self._client.submit(do_sent, job, mine, key=f"clip-{job.key}-{time.monotonic_ns()}", pure=False)

    def _outcome(self, future: Any, job: Job) -> ClipOutcome:
        from distributed import KilledWorker

        if future.status == "cancelled":
            raise self._gone()
        try:
            outcome: ClipOutcome = future.result(timeout=PATIENCE)
        except KilledWorker as e:
            return failure(job, DIED, f"its worker died {e.allowed_failures + 1} times: too little memory?")
        except EnvironmentProblem:
            raise
        except (OSError, *NO_ANSWER, CancelledError):
            raise self._gone() from None
        except Exception as e:  # errors of Dask itself about one job
            return failure(job, UNEXPECTED, f"unexpected {type(e).__name__}: {first_line(e)}")
        return outcome

    def _look_for_workers(self, alone: float) -> float:
        """Return the time since when there are no workers, or 0."""
        if self._client.status != "running":
            raise self._gone()
        if self._threads():
            return 0.0
        now = time.monotonic()
        if alone and now - alone > PATIENCE:
            raise EnvironmentProblem(f"the scheduler at {self.address} has had no workers for {PATIENCE:g} s")
        return alone or now

    def _gone(self) -> EnvironmentProblem:
        return EnvironmentProblem(f"the scheduler at {self.address} stopped responding")


def do_sent(job: Job, expected: dict[str, str]) -> ClipOutcome:
    """Do a job on a worker.

    Raises:
        EnvironmentProblem: if its package versions differ from the sender's.
    """
    _check_versions("a worker", expected, versions())
    return do_job(job)


def _check_versions(worker: str, mine: dict[str, str], theirs: dict[str, str]) -> None:
    for name, version in mine.items():
        if theirs.get(name) != version:
            raise EnvironmentProblem(
                f"{worker} has {name} {theirs.get(name)}, but this machine has {version}: install the same, or "
                "results would differ"
            )
