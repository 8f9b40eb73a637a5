"""Retargeting of clip libraries, in local processes or on a cluster, resumable.

```python
import tempfile
from pathlib import Path

from humanoid_control.clip_library import LibrarySettings, WorkerRobot, do_job, find_clips, library_jobs

with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "clips.txt").write_text("gentle_dance")
    clips = find_clips(f"{folder}/clips.txt")
jobs, failed = library_jobs(clips, [WorkerRobot.of("wabian2")], LibrarySettings())
outcome = do_job(jobs[0])
print(outcome.record["grade"], outcome.record["verdict"], len(outcome.content))
```

`retarget_library` does all jobs with `LocalWorkers` or a `Cluster`.
"""

from typing import TYPE_CHECKING

from humanoid_control import lazy

if TYPE_CHECKING:
    from humanoid_control.clip_library.clips import LibraryClip as LibraryClip
    from humanoid_control.clip_library.clips import find_clips as find_clips
    from humanoid_control.clip_library.clips import is_library as is_library
    from humanoid_control.clip_library.cluster import Cluster as Cluster
    from humanoid_control.clip_library.gallery import gallery_page as gallery_page
    from humanoid_control.clip_library.library import LibraryReport as LibraryReport
    from humanoid_control.clip_library.library import library_jobs as library_jobs
    from humanoid_control.clip_library.library import retarget_library as retarget_library
    from humanoid_control.clip_library.manifest import Records as Records
    from humanoid_control.clip_library.places import Place as Place
    from humanoid_control.clip_library.places import place_for as place_for
    from humanoid_control.clip_library.work import ClipOutcome as ClipOutcome
    from humanoid_control.clip_library.work import Job as Job
    from humanoid_control.clip_library.work import LibrarySettings as LibrarySettings
    from humanoid_control.clip_library.work import WorkerRobot as WorkerRobot
    from humanoid_control.clip_library.work import do_job as do_job
    from humanoid_control.clip_library.workers import LocalWorkers as LocalWorkers

__getattr__, __dir__, __all__ = lazy.attach(
    __name__,
    {
        "clips": ["LibraryClip", "find_clips", "is_library"],
        "cluster": ["Cluster"],
        "gallery": ["gallery_page"],
        "library": ["LibraryReport", "library_jobs", "retarget_library"],
        "manifest": ["Records"],
        "places": ["Place", "place_for"],
        "work": ["Job", "LibrarySettings", "ClipOutcome", "WorkerRobot", "do_job"],
        "workers": ["LocalWorkers"],
    },
    public=["Cluster", "LibrarySettings", "LocalWorkers", "place_for", "retarget_library"],
)
