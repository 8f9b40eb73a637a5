"""Worker processes on this machine, replaced when they die or grow.

Each lost job is tried once more.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import Any, Protocol

from humanoid_control.clip_library.work import DIED, ClipOutcome, Job, do_job, failure, warm
from humanoid_control.errors import EnvironmentProblem
from humanoid_control.in_child import end_with_parent

TRIES = 2  # attempts at a job whose worker dies
DEATHS_AT_START = 4  # consecutive deaths without work before the run stops
SHARE = 0.8  # share of the machine's memory for all workers
LEAST_MEMORY = 1 << 30  # [bytes] minimum memory limit of a worker
GROWN = 0.5  # share of its limit above which a worker is replaced after a job
READY = "ready"  # first message of a worker
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Executor(Protocol):
    """Executor of jobs."""

    workers: int
    """Number of concurrent jobs."""

    delivers: bool
    """True if the workers write outputs to an address themselves."""

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[ClipOutcome]:
        """Yield the outcomes as jobs finish; closing stops the work."""
        ...


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def memory_each(workers: int) -> int:
    """Return the memory limit of each worker [bytes]."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return max(int(SHARE * total / workers), LEAST_MEMORY)


class LocalWorkers:
    """Worker processes of this machine.

    Attributes:
        memory: memory limit of each [bytes].
    """

    delivers = False

    def __init__(
        self, workers: int | None = None, memory: int | None = None, do: Callable[[Job], ClipOutcome] = do_job
    ) -> None:
        """Configure the workers without starting them.

        Args:
            workers: number of workers; None: one per core.
            memory: memory limit of each [bytes]; None: a share of the machine's.
        """
        self.workers = workers or cores()
        self.memory = memory or memory_each(self.workers)
        self.replaced, self._do = 0, do
        self._context = multiprocessing.get_context("forkserver")  # forking a process with threads may deadlock
        self._context.set_forkserver_preload([__name__])

    def _start(self) -> _Worker:
        before = {name: os.environ.get(name) for name in THREADS}
        os.environ.update(dict.fromkeys(THREADS, "1"))  # one thread per library, because every core has a worker
        try:
            return _Worker(self._context, self.memory, self._do)
        finally:
            for name, value in before.items():
                if value is None:
                    del os.environ[name]
                else:
                    os.environ[name] = value

    def outcomes(self, jobs: Sequence[Job]) -> Iterator[ClipOutcome]:
        """Yield the outcomes as jobs finish.

        Raises:
            EnvironmentProblem: if workers cannot start, or die at once.
        """
        queue, tries, deaths = _Queue(jobs), dict[str, int](), 0
        team: list[_Worker] = []
        try:
            while queue or any(w.job for w in team):
                while len(team) < min(self.workers, len(queue) + sum(w.job is not None for w in team)):
                    team.append(self._start())
                for w in team:
                    if w.job is None and queue:
                        w.give(queue.next(w.clip))
                for w in self._ready(team):
                    answer = w.take()
                    if answer == READY:
                        continue
                    if isinstance(outcome := answer, ClipOutcome):
                        deaths = 0
                        yield outcome
                        if outcome.memory > GROWN * self.memory:
                            self._replace(team, w)
                        continue
                    job, how = w.job, w.ended()
                    self._replace(team, w)
                    if not w.warm:
                        deaths += 1
                        if deaths >= DEATHS_AT_START:
                            raise EnvironmentProblem(f"worker processes die at startup ({how})")
                    if job is not None:
                        tries[job.key] = tries.get(job.key, 0) + (1 if w.warm else 0)
                        if tries[job.key] < TRIES:
                            queue.again(job)
                        else:
                            told = (
                                f"its worker died {TRIES} times ({how}): the clip may need more memory than available"
                            )
                            yield failure(job, DIED, told)
        finally:
            for w in team:
                w.end()

    def _ready(self, team: list[_Worker]) -> list[_Worker]:
        waited = connection.wait([w.pipe for w in team])
        return [w for w in team if w.pipe in waited]

    def _replace(self, team: list[_Worker], worker: _Worker) -> None:
        worker.end()
        team.remove(worker)
        self.replaced += 1


class _Queue:
    """Waiting jobs; those of a clip prefer one worker."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._clips: dict[str, deque[Job]] = {}
        for job in jobs:
            self._clips.setdefault(job.clip.name, deque()).append(job)
        self._fresh = deque(self._clips)
        self._left = len(jobs)

    def __len__(self) -> int:
        return self._left

    def next(self, clip: str) -> Job:
        """Return a job of this clip, else of a new clip, else any."""
        if not self._clips.get(clip):
            while self._fresh and not self._clips[self._fresh[0]]:
                self._fresh.popleft()
            clip = self._fresh.popleft() if self._fresh else max(self._clips, key=lambda c: len(self._clips[c]))
        self._left -= 1
        return self._clips[clip].popleft()

    def again(self, job: Job) -> None:
        self._clips[job.clip.name].appendleft(job)
        self._fresh.appendleft(job.clip.name)
        self._left += 1


class _Worker:
    """Worker process with its job."""

    def __init__(self, context: Any, memory: int, do: Callable[[Job], ClipOutcome]) -> None:
        self.pipe, theirs = context.Pipe()
        self.job: Job | None = None
        self.clip, self.warm = "", False
        self.process = context.Process(target=_serve, args=(theirs, memory, do), daemon=True)
        try:
            self.process.start()
        except OSError as e:
            raise EnvironmentProblem(f"a worker process cannot be started: {e.strerror or e}") from None
        theirs.close()

    def give(self, job: Job) -> None:
        """Send a job."""
        self.job, self.clip = job, job.clip.name
        with contextlib.suppress(OSError):
            self.pipe.send(job)

    def take(self) -> ClipOutcome | str | None:
        """Return an outcome, READY at the start, or None from a dead process."""
        try:
            answer: ClipOutcome | str = self.pipe.recv()
        except (EOFError, OSError):
            return None
        self.warm = True
        if answer == READY:
            return READY
        self.job = None
        return answer

    def ended(self) -> str:
        self.process.join(5)
        code = self.process.exitcode
        if code is not None and code < 0:
            return f"signal {signal.Signals(-code).name}"
        return f"exit code {code}"

    def end(self) -> None:
        self.pipe.close()
        self.process.kill()
        self.process.join()


def _serve(pipe: Any, memory: int, do: Callable[[Job], ClipOutcome]) -> None:
    """Run a worker process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent handles Ctrl-C and ends the workers
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    end_with_parent()
    warm()
    with contextlib.suppress(EOFError, OSError):
        pipe.send(READY)
        while True:
            pipe.send(do(pipe.recv()))
