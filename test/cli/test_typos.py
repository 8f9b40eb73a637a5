"""A typo in any argument of any command: one clear line on standard error, exit code 2, nothing computed or written.

Numbers and choices are tried without being listed; a text that means something has a row. An argument without a row
fails the last test, so that a new one is not forgotten.
"""

import argparse

import pytest

from humanoid_control.cli.main import COMMANDS, command_module, main
from humanoid_control.cli.parser import Parser, comma_list, file_path, folder_path, given

TEXT = (None, str, given, comma_list, file_path, folder_path)

# command -> argument -> (words of the command line, what the answer says)
ROWS = {
    "ros2_control": {
        "--robot": ("--robot hpr2 -o .", "did you mean hrp2"),
        "--output": ("--robot hrp2 -o nowhere/below", "nowhere"),
        "--plugin": ("--robot hrp2 -o . --gains --plugin mujoco", "PACKAGE/CLASS"),
    },
    "moveit": {
        "--robot": ("--robot hpr2 -o .", "did you mean hrp2"),
        "--output": ("--robot hrp2 -o nowhere/below", "nowhere"),
        "--controller": ("--robot hrp2 -o . --controller a-b", "must be a ROS name"),
    },
    "demo": {
        "--up": ("--motion dance --up q", "must be x, y, z, -x, -y or -z"),
        "--ground": ("walk --ground plan:slope=3", "did you mean plane"),
        "--picture": ("tendons --picture nowhere/a.png", "the folder nowhere does not exist"),
        "demo": ("raech", "did you mean reach"),
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--motion": ("--motion dnace", "did you mean dance"),
        "--set": ("--set whole_body_ik.rat=3", "did you mean rate"),
        "--marker-set": ("--motion mine.trc --marker-set plug_in_giat", "mine.trc"),
        "--unit": ("--motion dance --unit milimetre", "milimetre"),
    },
    "up": {
        "--only": ("imitation --only viewr,simulator", "unknown node 'viewr': did you mean viewer"),
        "--except": ("imitation --except simulatr", "unknown node 'simulatr': did you mean simulator"),
        "stack": ("imitatoin", "did you mean imitation"),
        "--robot": ("targets --robot hpr2", "did you mean hrp2"),
        "--set": ("targets --set whole_body_ki.rate=3", "did you mean whole_body_ik"),
        "--namespace": ("targets --namespace a-b", "letters, digits"),
        "--frame-prefix": ("targets --frame-prefix /a", "without a leading slash"),
    },
    "soak": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--stack": ("--stack imitatoin", "did you mean imitation"),
        "--only": ("--only flod", "did you mean flood"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
        "--set": ("--set whole_body_ik.rat=3", "did you mean rate"),
    },
    "robots": {
        "robot": ("show hpr2", "did you mean hrp2"),
        "--tip": ("dh hrp2 --tip l_wirst", "did you mean l_wrist"),
        "--base": ("dh hrp2 --base chst", "did you mean"),
        "--motion": ("touching hrp2 --motion dnace", "did you mean dance"),
        "--output": ("map hrp2 -o nowhere/deep", "the folder nowhere does not exist"),
    },
    "segments": {
        "robot": ("lolla", "did you mean lola"),
        "--file": ("lola --file nowhere/x.yaml", "the folder nowhere does not exist"),
        "--host": ("lola --host nowhere", "'nowhere' is not an address"),
        "--origins": ("lola --origins *", "neither a host nor an origin"),
    },
    "tendons": {
        "robot": ("kengoro_uper", "did you mean kengoro_upper"),
        "--groups": ("--groups automtic", "did you mean automatic"),
        "--fit": ("--fit nek -o a.npz", "did you mean neck"),
        "--kind": ("--fit neck -o a.npz --kind polynom", "did you mean polynomial"),
        "--output": ("--fit neck -o a.npy", "must be a .npz file"),
    },
    "retarget": {
        "--up": ("dance --robot hrp2 --up q", "must be x, y, z, -x, -y or -z"),
        "clip": ("dnace", "did you mean dance"),
        "--robot": ("dance --robot hrp2,hpr2", "did you mean hrp2"),
        "--output": ("dance -o out.cvs", "did you mean .csv"),
        "--marker-set": ("dance --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--method": ("dance --method dsl", "did you mean dls"),
        "--avoidance": ("dance --avoidance shfit", "did you mean shift"),
        "--stretch": ("dance --whole-body --stretch atuo", "did you mean auto"),
        "--unit": ("dance --unit milimetre", "milimetre"),
        "--scheduler": ("clips.txt --scheduler localhost:8786 -o out/", "expected an address such as tcp://host:8786"),
        "--html": ("clips.txt --html page.pdf -o out/", "must be a .html file"),
    },
    "perform": {
        "clip": ("dnace", "did you mean dance"),
        "--robot": ("dance --robot hpr2", "did you mean hrp2"),
        "--engine": ("dance --engine mujoko", "mujoco"),
        "--drives": ("dance --drives postion", "position"),
        "--output": ("dance -o out.nzp", "unknown format '.nzp'"),
        "--picture": ("dance --picture out.pgn", "unknown format '.pgn'"),
        "--marker-set": ("dance --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--unit": ("dance --unit milimetre", "milimetre"),
        "--up": ("dance --up q", "must be x, y, z, -x, -y or -z"),
    },
    "reach": {
        "--robot": ("--robot hpr2 --to zero", "did you mean hrp2"),
        "--arm": ("--arm rihgt --to zero", "did you mean right"),
        "--from": ("--from nuetral --to zero", "did you mean neutral"),
        "--to": ("--to nuetral", "did you mean neutral"),
        "--cost": ("--cost mct --to zero", "did you mean mtc"),
        "--param": ("--param quintc --to zero", "did you mean quintic"),
        "--output": ("--to zero -o out.cvs", "did you mean .csv"),
        "--measured": ("--measured nowhere.mat", "nowhere.mat: cannot be read"),
    },
    "policy": {
        "file": ("nowhere.onnx", "nowhere.onnx: file not found"),
        "--robot": ("nowhere.onnx --robot hpr2", "did you mean hrp2"),
        "--network": ("nowhere.yaml --network nowhere.onnx", "nowhere.yaml: file not found"),
        "--output": ("new nowhere.onnx -o nowhere/deep.yaml", "the folder nowhere does not exist"),
        "--command": ("nowhere.onnx --robot hrp2 --play --command fast", "must be three numbers"),
        "--clip": ("nowhere.onnx --clip nowhere.bvh", "--clip applies to a run in a simulator"),
        "--limiter": ("nowhere.onnx --robot hrp2 --play --limiter gaet", "did you mean gate"),
    },
    "warm": {
        "groups": ("simulatoin", "unknown group 'simulatoin': did you mean simulation"),
        "--explain": ("--explain nowhere.py", "nowhere.py not found"),
    },
    "analyse": {
        "clip": ("dnace", "did you mean dance"),
        "--model": ("dance --model subjcet.osim", "subjcet.osim"),
        "--static": ("dance --static gentle_dnace", "did you mean gentle_dance"),
        "--forces": ("dance --forces nowhere.mot", "nowhere.mot"),
        "--forces-unit": ("dance --forces-unit mm", "the length unit of the --forces table"),
        "--setup": ("dance --setup nowhere.xml", "nowhere.xml: not found"),
        "--markers": ("dance --markers plug_in_giat", "did you mean plug_in_gait"),
        "--sex": ("dance --sex womn", "did you mean women"),
        "--robots": ("dance --robots lola,hpr2", "did you mean hrp2"),
        "--output": ("dance -o nowhere/deep", "the folder nowhere does not exist"),
        "--unit": ("dance --unit milimetre", "milimetre"),
    },
    "score": {
        "--up": ("dance --up q", "must be x, y, z, -x, -y or -z"),
        "clip": ("dnace", "did you mean dance"),
        "--robot": ("dance --robot hrp2 --robot hpr2", "did you mean hrp2"),
        "--method": ("dance --method constrained,dsl", "did you mean dls"),
        "--marker-set": ("dance --robot hrp2 --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--trough-rule": ("dance --trough-rule boht", "did you mean both"),
        "--html": ("dance --robot hrp2 --html page.pdf", "must be a .html file"),
        "--acceleration": ("dance --robot hrp2 --acceleration 20,fast", "fast"),
        "--output": ("dance --robot hrp2 -o nowhere/deep", "the folder nowhere does not exist"),
        "--unit": ("dance --robot hrp2 --unit milimetre", "milimetre"),
    },
    "clip": {
        "--up": ("dance --up q", "must be x, y, z, -x, -y or -z"),
        "clip": ("dnace", "did you mean dance"),
        "--draft": ("dance --draft nowhere/set.yaml", "nowhere"),
        "--output": ("dance -o nowhere/x.png", "the folder nowhere does not exist"),
        "--marker-set": ("dance --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--unit": ("dance --unit milimetre", "milimetre"),
    },
    "study sternum": {
        "--clip": ("--clip dnace", "did you mean dance"),
        "--marker-set": ("--clip dance --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--unit": ("--clip mine.trc --unit milimetre", "milimetre"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "dance": {
        "--up": ("dance --up q", "must be x, y, z, -x, -y or -z"),
        "clip": ("dnace", "did you mean dance"),
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--output": ("dance -o x.mp4", "must be a .html or .viser file"),
        "--host": ("--host nowhere", "'nowhere' is not an address"),
        "--origins": ("dance --origins *", "neither a host nor an origin"),
        "--marker-set": ("mine.trc --marker-set plug_in_giat", "mine.trc"),
        "--unit": ("dance --unit milimetre", "milimetre"),
    },
    "picture": {
        "--up": ("--at 2 --motion dance --up q", "must be x, y, z, -x, -y or -z"),
        "--output": ("-o x.jpg", "must be a .png file"),
        "--video": ("--video x.gif", "must be a .mp4, .mov, .mkv or .webm file"),
        "--robot": ("--robot hrp2,hpr2", "did you mean hrp2"),
        "--motion": ("--motion dnace", "did you mean dance"),
        "--marker-set": ("--at 2 --motion mine.trc --marker-set plug_in_giat", "mine.trc"),
        "--unit": ("--at 2 --unit milimetre", "milimetre"),
    },
    "record": {"--output": ("-o /proc/bag", "cannot write the bag")},
    "replay": {
        "bag": ("begged", "bag not found: begged"),
        "--topics": ("bag --topics joint_sates", "did you mean /joint_states"),
        "--robot": ("bag --viewer --robot hpr2", "did you mean hrp2"),
    },
    "why": {
        "recording": ("begged", "bag not found: begged"),
        "other": ("nowhere begged", "bag not found: nowhere"),
        "--robot": ("begged --robot hpr2", "did you mean hrp2"),
        "--html": ("begged --html page.pdf", "must be a .html file"),
    },
    "study imitation": {
        "--clip": ("--clip dnace", "did you mean dance"),
        "--marker-set": ("--clip mine.trc --marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--only": ("--only H99", "H99"),
        "--output": ("-o findings.pdf", "unknown format '.pdf'"),
        "--unit": ("--clip mine.trc --unit milimetre", "milimetre"),
    },
    "study momentum": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--only": ("--only T-99", "T-99"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study calibration": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study safety": {"--robot": ("--robot lolla", "did you mean lola")},
    "study worlds": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--vary": ("--vary fricton=0.2,0.4", "did you mean friction"),
        "--engine": ("--engine mujco", "did you mean mujoco"),
        "--drives": ("--drives elastik", "did you mean elastic"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study walking": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--only": ("--only robtos", "did you mean robots"),
        "--walk": ("--only ways --walk bakward", "did you mean backward"),
        "--ground": ("--ground plan:slope=3", "did you mean plane"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study dance": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--clip": ("--clip dnace", "did you mean dance"),
        "--only": ("--only stepps", "did you mean steps"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study clearance": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study humanoids": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--clip": ("--robot hrp2 --clip dnace", "did you mean dance"),
        "--resume": ("--robot hrp2 --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study whole_body": {
        "--method": ("--method live,clp", "did you mean clip"),
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--clip": ("--robot hrp2 --clip dnace", "did you mean dance"),
        "--resume": ("--robot hrp2 --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study tracker": {
        "--method": ("--method live,clp", "did you mean clip"),
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--clip": ("--robot hrp2 --clip dnace", "did you mean dance"),
        "--policy": ("--robot hrp2 --clip dance --policy nowhere.yaml", "no file nowhere.yaml"),
        "--network": ("--robot hrp2 --clip dance --network nowhere.onnx", "no file nowhere.onnx"),
        "--resume": ("--robot hrp2 --clip dance --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study limiters": {
        "--limiter": ("--limiter gate,rat20", "did you mean rate20"),
        "--engine": ("--engine mujco", "did you mean mujoco"),
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--policy": ("--robot hrp2 --policy nowhere.onnx", "no file nowhere.onnx"),
        "--resume": ("--robot hrp2 --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study policy_faults": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--policy": ("--robot hrp2 --policy nowhere.onnx", "no file nowhere.onnx"),
        "--resume": ("--robot hrp2 --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study perform": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--clip": ("--robot hrp2 --clip dnace", "did you mean dance"),
        "--only": ("--only feasability", "did you mean feasibility"),
        "--engine": ("--robot hrp2 --engine mujco", "did you mean mujoco"),
        "--resume": ("--robot hrp2 --clip dance --resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o found.mdd", "did you mean .md"),
    },
    "study hosts": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--only": ("--only cuds", "did you mean cuts"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study faults": {
        "--robot": ("--robot lolla", "did you mean lola"),
        "--only": ("--only stats", "did you mean states"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--set": ("--set whole_body_ik.following_eror=0", "did you mean following_error"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study reaching": {
        "--data": ("--data nowhere", "no file S*_trajs.mat in nowhere"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study human": {
        "--data": ("--data nowhere", "nowhere"),
        "--only": ("--only R55", "did you mean R5"),
        "--resume": ("--resume nowhere/kept.jsonl", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study tendons": {
        "--robot": ("--robot kengoro_uper", "did you mean kengoro_upper"),
        "--models": ("--only others --models nowhere", "the folder nowhere does not exist"),
        "--only": ("--only E99", "E99"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "study tendon_control": {
        "--robot": ("--robot kengoro_uper --only C4", "did you mean kengoro_upper"),
        "--only": ("--only C99", "C99"),
        "--models": ("--only C9 --models nowhere", "the folder nowhere does not exist"),
        "--output": ("-o nowhere/deep", "the folder nowhere does not exist"),
    },
    "hardware new": {
        "--robot": ("--robot hpr2 --bus loopback -o a.yaml", "did you mean hrp2"),
        "--bus": ("--robot hrp2 --bus lopback -o a.yaml", "did you mean loopback"),
        "--output": ("--robot hrp2 --bus loopback -o nowhere/a.yaml", "the folder nowhere does not exist"),
    },
    "hardware check": {
        "file": ("nowhere.yaml", "nowhere.yaml: not a readable hardware file"),
        "--calibration": ("robot.yaml --calibration nowhere/zeros.yaml", "nowhere/zeros.yaml"),
    },
    "hardware scan": {"file": ("nowhere.yaml", "nowhere.yaml: not a readable hardware file")},
    "hardware call": {"--namespace": ("stop --namespace a-b", "letters, digits")},
    "hardware jog": {
        "file": ("nowhere.yaml l_knee --to 0.1", "nowhere.yaml: not a readable hardware file"),
        "joint": ("robot.yaml l_elbow_flexon --to 0.1", "did you mean l_elbow_flexion"),
        "--calibration": ("robot.yaml l_elbow_flexion --to 0.1 --calibration nowhere/zeros.yaml", "nowhere/zeros.yaml"),
    },
    "bench stack": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench start": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench retarget": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--motion": ("--motion dnace", "did you mean dance"),
        "--marker-set": ("--marker-set plug_in_giat", "did you mean plug_in_gait"),
        "--unit": ("--unit milimetre", "milimetre"),
    },
    "bench whole_body": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--motion": ("--motion dnace", "did you mean dance"),
    },
    "bench batch": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench self_distance": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench distance": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench dynamics": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench tendons": {"--robot": ("--robot kengoro_uper", "did you mean kengoro_upper")},
    "bench ik": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench loop": {"--robot": ("--robot hpr2", "did you mean hrp2")},
    "bench latency": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--transport": ("--transport smh", "did you mean shm"),
        "--keep": ("--keep nowhere/deep", "the folder nowhere does not exist"),
    },
    "bench policy": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--policy": ("--policy nowhere.onnx", "nowhere.onnx: file not found"),
    },
    "bench driver": {"--only": ("--only cyle", "did you mean cycle")},
    "bench perform": {
        "--robot": ("--robot hpr2", "did you mean hrp2"),
        "--engine": ("--engine mujco", "did you mean mujoco"),
        "--only": ("--only tsid_stif", "did you mean tsid_stiff"),
        "--motion": ("--motion dnce", "did you mean dance"),
    },
    "bench walk": {"--keep": ("--keep nowhere/deep", "the folder nowhere does not exist")},
    "bench all": {
        "--only": ("--only stcak", "did you mean stack"),
        "--output": ("-o page.html", "must be a .md file"),
        "--keep": ("--keep nowhere/deep", "the folder nowhere does not exist"),
        "--summary": ("--summary README.txt", "must be a .md file"),
    },
}
# What may be anything: a topic that somebody will publish.
ANYTHING = {("record", "--topics")}


# Arguments that would be ignored, or are empty, or do not go together.
def parsers():
    """Each command, or command and sub-command, with its parser."""
    out = {}
    for name in COMMANDS:
        parser = Parser(prog=f"humanoid {name}")
        command_module(name).add_arguments(parser)
        groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        out |= {f"{name} {k}": p for k, p in groups[0].choices.items()} if groups else {name: parser}
    return out


def values():
    """(command, argument, action) of everything that takes a value."""
    return [
        (command, a.option_strings[-1] if a.option_strings else a.dest, a)
        for command, parser in parsers().items()
        for a in parser._actions
        if a.nargs != 0 and not isinstance(a, argparse._HelpAction)
    ]


try:
    VALUES = values()
except ImportError:  # without ROS 2 some commands cannot be asked
    VALUES = []


@pytest.fixture(scope="module")
def drafted():
    """What a file of a real robot says."""
    from humanoid_control.hardware.commissioning import draft_file
    from humanoid_control.robots import load_robot

    return draft_file(load_robot("hrp2", "fixed"), "hrp2", "loopback")


@pytest.fixture
def hardware_file(tmp_path, drafted):
    """A file of a real robot, called 'robot.yaml'."""
    (tmp_path / "robot.yaml").write_text(drafted)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{command} {line}", words)
        for command, rows in ROWS.items()
        for option, (line, words) in rows.items()
        if (command, option) in {(c, o) for c, o, _ in VALUES}
    ],
    ids=lambda v: v if v.startswith(tuple(COMMANDS)) else "",
)
def test_a_typo_is_one_line_with_the_right_spelling(told, bag, hardware_file, line, words):
    assert words in told(line)


NUMBERS = [(c, o, a) for c, o, a in VALUES if a.type in (int, float)]
CHOICES = [(c, o, a) for c, o, a in VALUES if a.choices is not None]
NAMES = [(c, o, a) for c, o, a in VALUES if a.choices is None and a.type in TEXT]


@pytest.mark.parametrize(("command", "option", "action"), NUMBERS, ids=lambda v: v if isinstance(v, str) else "")
def test_a_word_in_place_of_a_number_is_one_line(told, command, option, action):
    assert f"argument {'/'.join(action.option_strings)}: invalid" in (line := told(f"{command} {option} soon"))
    assert "'soon'" in line


@pytest.mark.parametrize(("command", "option", "action"), CHOICES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_word_that_is_no_choice_is_one_line(told, command, option, action):
    wrong = [option, "xyzzy"] if action.option_strings else ["xyzzy"]
    assert "'xyzzy': " in told([*command.split(), *wrong])


@pytest.mark.parametrize(("command", "option", "action"), NAMES, ids=lambda v: v if isinstance(v, str) else "")
def test_a_text_that_is_empty_is_one_line(told, command, option, action):
    """A script whose variable is not set: `--robot "$ROBOT"`."""
    before = ROWS.get(command, {}).get(option, ("", ""))[0].split()
    known = [] if action.option_strings else before[:-1]
    assert told([*command.split(), *known, *([option] if action.option_strings else []), ""])


@pytest.mark.parametrize("command", sorted({c for c, _, _ in VALUES}))
def test_every_argument_of_a_command_has_its_typo(command):
    tried = set(ROWS.get(command, {})) | {o for c, o in ANYTHING if c == command}
    listed = {o for c, o, a in VALUES if c == command} - {o for c, o, a in NUMBERS + CHOICES if c == command}
    assert listed <= tried, "give it a row"


def test_what_set_says_is_what_the_demo_plays_and_judges(monkeypatch):
    """Parameters that are options too, and the lead-in, which is none; nothing is written over."""
    import humanoid_control.cli.demo as demo
    from humanoid_control.cli.main import main
    from humanoid_control.errors import ConfigError

    seen = {}

    def session(stack, robot, settings, **options):
        seen.update(settings["trajectory_streamer"])
        raise ConfigError("far enough")

    monkeypatch.setattr(demo, "Session", session)
    monkeypatch.setattr(demo, "in_child", lambda function, *args: function(*args))  # what it sees is seen here
    monkeypatch.setattr(demo, "_check_input", lambda args: (seen.update(scale=args.scale), "WABIAN-2")[1])
    given = {"speed": "0.5", "clip": "gentle_dance", "clip_scale": "0.9", "marker_set": "", "lead_in": "3.0"}
    settings = [text for name, value in given.items() for text in ("--set", f"trajectory_streamer.{name}={value}")]
    assert main(["demo", "--no-viewer", *settings]) == 2
    wanted = {"speed": 0.5, "clip": "gentle_dance", "clip_scale": 0.9, "marker_set": "", "lead_in": 3.0, "scale": 0.9}
    assert seen == wanted


def test_without_a_home_a_command_says_what_to_set_or_works(told, monkeypatch, capfd):
    """As in a container whose user is in no list."""
    import pwd

    def nobody(uid):
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    assert "is not the path of a URDF file" in told("robots show ~/r.urdf")
    monkeypatch.delenv("HUMANOID_HOME")
    assert main(["runs"]) == 0, "in a folder for temporary files"
    assert main(["robots", "list"]) == 0 and "HRP-2" in capfd.readouterr().out


@pytest.mark.parametrize("line", ["--only a,b --only c", "--only=a,b,c", "--only a --only b,c"])
def test_a_list_given_in_several_options_is_whole(line):
    parser = Parser()
    parser.add_argument("--only", type=comma_list, default=[])
    assert parser.parse_args(line.split()).only == ["a", "b", "c"]
    assert parser.parse_args([]).only == []
