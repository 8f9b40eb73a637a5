"""`humanoid bench batch`: identical clips, and what is counted."""

import pytest

from evidence.benchmarks.motion import batch
from humanoid_control.clip_library import find_clips
from humanoid_control.mocap import load_clip


def test_all_clips_are_the_dance(tmp_path):
    clip = load_clip("dance")
    batch.write_clips(clip, tmp_path / "lib", 3)
    found = find_clips(str(tmp_path / "lib"))
    assert len({c.digest() for c in found}) == 1 and len(found) == 3
    again = load_clip(found[2].path)
    assert again.labels == clip.labels and again.rate == pytest.approx(clip.rate)
    assert again.positions == pytest.approx(clip.positions, abs=1e-5)
    long = batch.long_clip(clip, 5000)
    assert long.positions.shape == (5000, *clip.positions.shape[1:])
    step = abs(long.positions[1:] - long.positions[:-1]).max()
    assert step == pytest.approx(abs(clip.positions[1:] - clip.positions[:-1]).max()), "no jump where it turns"


@pytest.mark.thorough
def test_a_round_counts_clips_frames_and_memory(monkeypatch):
    monkeypatch.setattr(batch, "LONG", 4000)
    monkeypatch.setattr(batch, "load_clip", lambda name: load_clip(name).crop(0.0, 1.6))
    rows = {r["name"]: r for r in batch.measure(clips=5, rounds=1)}
    frames = len(load_clip("dance").crop(0.0, 1.6).positions)
    for n in (1, 2):
        assert rows[f"frames_{n}"]["median"] == pytest.approx(frames * rows[f"clips_{n}"]["median"], rel=1e-3)
    assert rows["speed_up"]["median"] == pytest.approx(rows["clips_2"]["median"] / rows["clips_1"]["median"], rel=1e-2)
    assert 50 < rows["worker_memory"]["median"] < 2000 and rows["memory_of_1000_frames"]["median"] > 0.1
    assert len(batch.notes(list(rows.values()))) == 2
