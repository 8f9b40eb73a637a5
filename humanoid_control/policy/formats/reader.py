"""Detection of policy formats, and rejection of code."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

from humanoid_control.errors import PolicyError, shown
from humanoid_control.paths import share_dir
from humanoid_control.policy.formats import asap, description, leapp, makers, rl_sar, unitree
from humanoid_control.policy.formats.beyondmimic import read_beyondmimic
from humanoid_control.policy.formats.holosoma import read_holosoma
from humanoid_control.policy.formats.values import is_file, read_file
from humanoid_control.policy.model import PolicyModel
from humanoid_control.policy.network import PolicyNetwork, read_network

CODE = (".pt", ".pth", ".jit", ".ts", ".pkl", ".pickle", ".ckpt")
ARCHIVE, PICKLE = b"PK", b"\x80"  # first bytes of the file
MOST_ENTRIES = 2_000  # inspected entries of an archive
MEMORY = ("hidden_state", "LSTM", "GRU")  # words in TorchScript code that keeps a state
YAML = (".yaml", ".yml")
FORMS = (
    "LEAPP, BeyondMimic or mjlab metadata, holosoma metadata, Unitree deploy.yaml, rl_sar, a YAML of ASAP, Berkeley "
    "Humanoid Lite, booster_gym, FALCON or unitree_rl_gym, or humanoid_policy/1"
)


def read_policy(path: Path, network: Path | None = None) -> tuple[PolicyModel, PolicyNetwork | None]:
    """Read a policy from a file or folder, and its network if readable.

    Args:
        path: ONNX file, YAML file next to one, or folder.
        network: replaces the description's.

    Raises:
        PolicyError: if unreadable, of unknown format, or code.
        ModuleNotFoundError: if onnx is not installed.
    """
    path = _file_of(path)
    if path.suffix.lower() in YAML:
        return _read_yaml(path, network)
    if network is not None:
        raise PolicyError(f"{path}: --network applies to a description, a YAML file")
    refuse_code(path)
    found = read_network(path)
    if {"joint_names", "joint_stiffness"} <= set(found.metadata):
        return read_beyondmimic(found), found
    if "dof_names" in found.metadata:
        return read_holosoma(found), found
    beside = _beside(path)
    if beside is not None:
        return _read_yaml(beside, None)
    if (above := asap.file_of(path)) is not None:
        return asap.read_asap(above, read_file(above), found), found
    shapes = ", ".join(f"{i.name} {list(i.shape)}" for i in found.inputs)
    if (fitting := _shipped(found)) is not None:
        raise PolicyError(
            f"{path}: neither it nor a file next to it describes its inputs ({shown(shapes)}), but they have the "
            f"sizes of {fitting.name}: `humanoid policy {fitting} --network {path}` if it is such a policy"
        )
    raise PolicyError(
        f"{path}: neither it nor a file next to it describes its inputs ({shown(shapes)}): "
        f"`humanoid policy new {path}` drafts a description with a question for each missing fact"
    )


def _shipped(network: PolicyNetwork) -> Path | None:
    """Return the packaged description that fits a network."""
    for path in sorted((share_dir() / "config" / "policies").glob("*.yaml")):
        try:
            model = description.read_description(path, read_file(path), network)
        except PolicyError:  # other input names
            continue
        sizes = all(sum(b.size for b in one.blocks) == one.size for one in model.inputs if one.blocks)
        driven = next((o.size for o in model.outputs), 0) == len(model.acted)
        if sizes and driven and not model.contradictions:
            return path
    return None


def refuse_code(path: Path, inputs: int = 0) -> None:
    """Reject programs (TorchScript, pickles).

    Args:
        inputs: observation size, if known.

    Raises:
        PolicyError: if it is one; explains how to export a network.
    """
    try:
        with open(path, "rb") as file:
            head = file.read(4)
    except OSError as e:
        raise PolicyError(f"{path}: cannot be read: {e.strerror}") from None
    if path.suffix.lower() not in CODE and head[:2] != ARCHIVE and not (head[:1] == PICKLE and head[1:2] <= b"\x05"):
        return
    program, memory = _torchscript(path)
    if not program:
        raise PolicyError(f"{path}: a pickle, which is code and is never loaded: export ONNX from the trainer")
    kept = ", with its hidden state as further inputs and outputs that a description feeds back," if memory else ""
    width = str(inputs) if inputs else "OBSERVATIONS"
    raise PolicyError(
        f"{path}: a TorchScript program, which is code and is never loaded: export a network{kept} where torch is: "
        f"python -c \"import torch; m = torch.jit.load('{path.name}', map_location='cpu').eval(); "
        f"torch.onnx.export(m, torch.zeros(1, {width}), '{path.stem}.onnx', input_names=['obs'], "
        f"output_names=['actions'], dynamo=False)\""
    )


def _torchscript(path: Path) -> tuple[bool, bool]:
    """Return whether an archive has TorchScript code, and whether that keeps a state."""
    try:
        with zipfile.ZipFile(path) as archive:
            rows = archive.infolist()[:MOST_ENTRIES]
            code = [r for r in rows if "/code/" in r.filename and r.filename.endswith(".py")]
            words = (archive.open(r).read(100_000).decode(errors="replace") for r in code)
            return bool(code), any(word in text for text in words for word in MEMORY)
    except (
        OSError,
        ValueError,
        RuntimeError,
        NotImplementedError,
        EOFError,
        zipfile.BadZipFile,
        zlib.error,
        lzma.LZMAError,
    ):
        return path.suffix.lower() in (".pt", ".jit", ".ts"), False


def _file_of(path: Path) -> Path:
    try:
        if path.is_dir():
            found = [
                p for p in (path / "params" / "deploy.yaml", path / "deploy.yaml", path / "config.yaml") if p.is_file()
            ]
            found = found or sorted(path.glob("*.onnx")) + sorted(path.glob("exported/*.onnx"))
            if len(found) == 1 or (found and found[0].suffix in YAML):
                return found[0]
            for code in sorted(p for p in path.iterdir() if p.suffix.lower() in CODE and p.is_file())[:1]:
                refuse_code(code)  # a folder with nothing else
            names = ", ".join(p.name for p in found) or "neither an ONNX file nor a description"
            raise PolicyError(f"{path} is a folder with {shown(names)}: give one file")
        if not path.is_file():
            raise PolicyError(f"{path}: file not found")
    except (OSError, ValueError) as e:
        raise PolicyError(f"{shown(path, 300)}: cannot be read: {getattr(e, 'strerror', None) or e}") from None
    return path


def _beside(path: Path) -> Path | None:
    places = [path.with_suffix(s) for s in (".policy.yaml", *YAML)]
    places += [path.parent / "deploy.yaml", path.parent.parent / "params" / "deploy.yaml", path.parent / "config.yaml"]
    for place in places:
        if place.is_file() and (place.name == "deploy.yaml" or _form(read_file(place)) is not None):
            return place
    return None


def _form(d: dict[str, Any]) -> str | None:
    if d.get("schema") == description.SCHEMA:
        return description.FORM
    if leapp.is_leapp(d):
        return leapp.FORM
    if "joint_ids_map" in d:
        return unitree.FORM
    if rl_sar.is_rl_sar(d):
        return rl_sar.FORM
    if asap.is_asap(d):
        return asap.FORM
    maker = makers.maker_of(d)
    return maker.form if maker is not None else None


def _read_yaml(path: Path, given: Path | None) -> tuple[PolicyModel, PolicyNetwork | None]:
    d = read_file(path)
    form = _form(d)
    if form == description.FORM:
        network = _network(given or description.network_path(path, d))
        return description.read_description(path, d, network), network
    if form == leapp.FORM:
        network = _network(given or leapp.network_path(path, d))
        return leapp.read_leapp(path, d, network), network
    if form == unitree.FORM:
        place = given or unitree.find_network(path)
        found = _network(place) if place else None
        model = unitree.read_unitree(path, d, found)
        return (model if place else _without(model, f"{path}: network not found: put it at {unitree.PLACES[0]}")), found
    if form == rl_sar.FORM:
        return _read_exported(path, d, given or rl_sar.network_path(path, d), rl_sar.read_rl_sar)
    if form == asap.FORM:
        if given is None:
            raise PolicyError(f"{path}: describes several policies: name the network of one by --network")
        network = _network(given)
        return asap.read_asap(path, d, network), network
    if (maker := makers.maker_of(d)) is not None:
        return _read_exported(path, d, given or makers.network_of(path, d, maker), maker.read)
    if "schema" in d:
        raise PolicyError(f"{path}: the schema '{shown(d['schema'])}' is not supported: {description.SCHEMA}")
    raise PolicyError(f"{path}: not a known kind of policy: {FORMS}; `humanoid policy new` drafts the last one")


def _read_exported(
    path: Path, d: dict[str, Any], place: Path, read: makers.Reader
) -> tuple[PolicyModel, PolicyNetwork | None]:
    """Read a file with the network at a place, or with the ONNX file of the same name next to it."""
    exported = place.with_suffix(".onnx")
    if is_file(exported):
        network = read_network(exported)
        return read(path, d, network), network
    model = read(path, d, None)
    if not is_file(place):
        return _without(model, f"{shown(place, 300)}: network not found: name it by --network"), None
    try:
        refuse_code(place, sum(i.size for i in model.inputs))
    except PolicyError as refused:
        return _without(model, str(refused)), None
    return _without(model, f"{place}: not a network: export ONNX from the trainer"), None


def _network(path: Path) -> PolicyNetwork:
    if path.suffix.lower() != ".onnx":
        refuse_code(path)
    return read_network(path)


def _without(model: PolicyModel, why: str) -> PolicyModel:
    return replace(model, contradictions=(why, *model.contradictions))
