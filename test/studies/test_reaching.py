"""The study of people's reaches: verdicts by their rules, data that is missing, outcomes that are kept."""

import json

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from evidence.studies import reaching
from evidence.studies.report import FAILS, HOLDS
from humanoid_control.errors import ConfigError
from humanoid_control.reaching.optimal.measured import VARIABLE
from test.conftest import DATA

FOLDER = DATA / "human_motion" / "reaching_hug_mp"


def found(**medians):
    """A summary with these medians, where the criterion nearest most often is angle jerk."""
    values = {"maj": 5.0, "mtc": 6.0, "torque": 30.0, "mchj": 8.0, "mtc_weightless": 8.0, "torque_weightless": 12.0}
    values |= {"mix_0.25": 5.5, "mix_0.5": 5.0, "mix_0.75": 4.9} | medians
    nearest = {"maj": 0.7, "mtc": 0.3, "torque": 0.0}
    return {name: {"median": m, "nearest": nearest.get(name, float("nan"))} for name, m in values.items()}


def test_verdicts_follow_their_rules():
    assert reaching.judge(found()) == {"R6": FAILS, "R7": HOLDS, "R7 mix": FAILS, "gravity": HOLDS}
    assert reaching.judge(found(torque=9.0))["R6"] == HOLDS
    assert reaching.judge(found(mtc=4.0))["R7"] == FAILS
    assert reaching.judge(found(mchj=4.0))["R7"] == FAILS
    assert reaching.judge(found(**{"mix_0.5": 3.9}))["R7 mix"] == HOLDS
    assert reaching.judge(found(mtc_weightless=6.5))["gravity"] == FAILS
    seldom = found()
    seldom["maj"]["nearest"], seldom["mtc"]["nearest"] = 0.3, 0.7
    assert reaching.judge(seldom)["R7"] == FAILS


def test_missing_data_and_numbers_without_sense_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="HuG-MP"):
        reaching.run_study(data=tmp_path)
    with pytest.raises(ConfigError, match="1 to 10"):
        reaching.run_study(data=tmp_path, repetition=0)


def write_first_motions(path, to):
    """Of each task of the repetition that is compared the first two motions, as the file has them."""
    tasks = loadmat(str(path))[VARIABLE][reaching.REPETITION - 1 : reaching.REPETITION]
    few = np.empty((reaching.REPETITION, tasks.shape[1]), object)
    for index in np.ndindex(few.shape):
        few[index] = np.empty((0, 0))
    for task, cell in enumerate(tasks[0]):
        few[-1, task] = cell.ravel()[:2]
    savemat(to, {VARIABLE: few})


@pytest.mark.nightly
def test_one_person_is_compared_once(tmp_path):
    if not (FOLDER / "S03_trajs.mat").is_file():
        pytest.skip(f"needs {FOLDER}: set HUMANOID_TEST_DATA to the folder that holds human_motion/")
    write_first_motions(FOLDER / "S03_trajs.mat", tmp_path / "S03_trajs.mat")
    kept = tmp_path / "kept.jsonl"
    report = reaching.run_study(data=tmp_path, workers=1, resume=kept)
    assert report.data["people"] == 1 and len(report.data["reaches"]) == 12
    assert report.data["verdicts"]["R6"] == FAILS and report.data["summary"]["maj"]["median"] < 7
    text = kept.read_text()
    row = json.loads(text)
    row["outcome"]["rows"][0]["torque"] = 1234.5  # taken from the file: not computed again
    kept.write_text(json.dumps(row) + "\n")
    again = reaching.run_study(data=tmp_path, workers=1, resume=kept)
    assert again.data["reaches"][0]["torque"] == 1234.5
