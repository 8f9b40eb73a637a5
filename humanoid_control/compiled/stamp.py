"""Stamps of compiled kernels: hashes of all code and values that the compiler puts into a kernel.

A stamp follows names from the code of a kernel to the objects behind them, and on from kernels and records. Comments,
docstrings, line numbers and annotations of functions do not count.

| reached object | contents of the stamp |
| --- | --- |
| kernel | instructions, names of arguments, defaults, options of the compiler, and everything that it reaches |
| record (NamedTuple) | names, declared types and defaults of its fields, and the members that the kernel reads |
| constant, array, enum | its value |
| numba extension (`type_callable`) | the code of the module that defines it, and its dependencies |
| NumPy, numba, the standard library | the name |
"""

from __future__ import annotations

import dis
import enum
import hashlib
import inspect
import pickle
import sys
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

PACKAGE = __name__.rpartition(".")[0]
BY_NAME = frozenset(sys.stdlib_module_names) - {"__main__"} | {"llvmlite", "numba", "numpy", "scipy"}
_TUPLE: Any = types.BaseTuple  # untyped
# Docstrings may come and go without a change of code; the others change with line numbers.
_UNUSED = ("__doc__", "__firstlineno__", "__static_attributes__")
_HAS_DOCSTRING = 0x4000000  # flag of a code object since Python 3.14
_PLAIN = frozenset((type(None), type(...), bool, int, float, complex, str, bytes))
_EXTENDED = dis.opmap["EXTENDED_ARG"]
_CONSTANT, _GLOBAL, _NAME = b"\1", b"\2", b"\3"  # marks of instructions by the meaning of their argument
_MARKED = {dis.opmap["LOAD_GLOBAL"]: _GLOBAL, dis.opmap["LOAD_NAME"]: _NAME} | dict.fromkeys(dis.hasconst, _CONSTANT)
_MARKS = b"".join(_MARKED.get(operation, b"\0") for operation in range(256))
_CACHE = dis.opmap.get("CACHE", -1)
_ATTRIBUTES = {dis.opmap["LOAD_ATTR"]: int(sys.version_info >= (3, 12))}  # with the flag bits below the name
if "LOAD_METHOD" in dis.opmap:
    _ATTRIBUTES[dis.opmap["LOAD_METHOD"]] = 0
_SHIFT = int(sys.version_info >= (3, 11))  # the lowest bit of the argument of LOAD_GLOBAL is a flag since then


class Reached(NamedTuple):
    """Object compiled into a kernel.

    Attributes:
        digest: hash of the object alone.
    """

    name: str
    digest: str
    parts: tuple[Any, ...]


def stamp(kernel: Any, options: Mapping[str, Any] | None = None) -> str:
    """Return the stamp of a kernel.

    Variables of enclosing functions are excluded: such kernels share a file and are distinguished by `stamp_of`.
    """
    own = [_function(kernel.py_func, _options(kernel), closed=False), *_compiler()]
    return _hash(str(sorted((options or {}).items())), *sorted(f"{r.name}={r.digest}" for r in _closure(own)))


def stamp_of(*things: Any) -> str:
    """Return one stamp of values, records and functions with everything that they reach."""
    parts: list[Any] = []
    texts = [_text(thing, parts) for thing in things]
    return _hash(*texts, *sorted(f"{r.name}={r.digest}" for r in _closure(map(_reached, parts))))


def stamp_of_types(kinds: Iterable[Any]) -> str:
    """Return the stamp of argument types: records, own types of numba, and kernels."""
    return stamp_of(*_defined(kinds))


def reached_by(kernel: Any) -> list[Reached]:
    """Return everything compiled into a kernel, itself first."""
    return _closure([_reached(kernel), *_compiler()])


def _closure(begin: Iterable[Reached]) -> list[Reached]:
    found: dict[int, Reached] = {}
    waiting = list(begin)[::-1]
    while waiting:
        one = waiting.pop()
        if id(one) not in found:
            found[id(one)] = one
            waiting += [_reached(part) for part in one.parts]
    return list(found.values())


def _compiler() -> list[Reached]:
    module = sys.modules.get(f"{PACKAGE}.jit")
    return [_reached(module)] if module else []


def _defined(kinds: Iterable[Any]) -> Iterator[Any]:
    """Yield the classes, modules and functions that define types of numba."""
    for kind in kinds:
        if isinstance(kind, types.Dispatcher):
            yield kind.dispatcher
        elif hasattr(kind, "instance_class"):
            yield kind.instance_class
        if isinstance(kind, _TUPLE):
            yield from _defined(kind)
        elif not _by_name(type(kind).__module__):
            yield sys.modules[type(kind).__module__]


# -------- objects

_known: dict[int, tuple[Any, Reached]] = {}  # by identity, valid while the object is kept with it


def _reached(thing: Any) -> Reached:
    """Return the description of a kernel, function, record, module, or named constant."""
    if isinstance(thing, Reached):
        return thing
    if id(thing) not in _known:
        if isinstance(thing, Dispatcher):
            found = _function(thing.py_func, _options(thing))
        elif isinstance(thing, FunctionType):
            found = _function(thing)
        elif isinstance(thing, ModuleType):
            found = _module(thing)
        else:
            found = _record(thing)
        _known[id(thing)] = thing, found
    return _known[id(thing)][1]


def _options(kernel: Any) -> str:
    return str(sorted(kernel.targetoptions.items()))


def _function(function: Any, options: str = "", closed: bool = True) -> Reached:
    code, parts = function.__code__, list[Any]()
    defaults = function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))
    cells = tuple(cell.cell_contents for cell in function.__closure__ or ()) if closed else ()
    texts = [options, _text(defaults, parts), _text(cells, parts)]
    home, scope = function.__module__, function.__globals__
    for name, members in sorted(_global_names(code).items()):
        if name in scope:
            text = _text(scope[name], parts, tuple(sorted(members)))
            parts.append(Reached(f"{home}.{name}", _hash(text), ()))
    return Reached(f"{home}.{function.__qualname__}", _hash(_code(code, parts), *texts), tuple(parts))


def _record(record: Any) -> Reached:
    """Describe a NamedTuple by its fields: `unpack` reads their types, constructors their defaults."""
    parts: list[Any] = []
    try:
        hints = get_type_hints(record, include_extras=True)
    except Exception:  # a name that only type checkers import
        hints = dict(getattr(record, "__annotations__", {}))
    declared = [f"{name}: {_text(hints.get(name), parts)}" for name in record._fields]
    defaults = _text(tuple(sorted(record._field_defaults.items())), parts)
    return Reached(_name(record), _hash(*declared, defaults), tuple(parts))


def _module(module: ModuleType) -> Reached:
    """Describe a numba extension module by its code and its dependencies in other own modules."""
    spec = getattr(module, "__spec__", None)
    code = spec.loader.get_code(module.__name__) if spec and hasattr(spec.loader, "get_code") else None
    parts: list[Any] = []
    if code is None:  # a script, or a module made by hand
        path = getattr(module, "__file__", None)
        return Reached(module.__name__, _hash(Path(path).read_bytes().hex() if path else ""), ())
    names = {name for each in _codes(code) for name in each.co_names if not name.startswith("__")}
    texts = [_code(code, parts)]
    for name in sorted(names & vars(module).keys()):
        value = vars(module)[name]
        if type(value) in _PLAIN or isinstance(value, (tuple, frozenset, np.ndarray)):
            texts.append(f"{name}={_text(value, parts)}")
        elif isinstance(value, (ModuleType, type, FunctionType, Dispatcher)):
            home = value.__name__ if isinstance(value, ModuleType) else str(value.__module__)
            if home not in (module.__name__, __name__) and home in sys.modules and not _by_name(home):
                parts.append(sys.modules[home])
    return Reached(module.__name__, _hash(*texts), tuple(parts))


def _by_name(module: str) -> bool:
    return module.partition(".")[0] in BY_NAME


def _name(thing: Any) -> str:
    return f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', type(thing).__qualname__)}"


# -------- values


def _text(value: Any, parts: list[Any], members: tuple[str, ...] = ()) -> str:
    """Return a text that values share only if kernels compiled with them are equal.

    Args:
        value: global, default, constant, or variable of an enclosing function.
        parts: gets the objects that the text contains by name.
        members: attributes that the code reads from the value.
    """
    if type(value) in _PLAIN:
        return f"{type(value).__name__} {value!r}"
    if hasattr(value, "__origin__"):  # a declared type with parameters
        return repr(value)
    if isinstance(value, ModuleType):
        found = [(name, getattr(value, name)) for name in members if hasattr(value, name)]
        if _by_name(value.__name__):  # only its constants have a value; more modules may appear in it at any time
            found = [(name, each) for name, each in found if type(each) in _PLAIN]
        return f"{value.__name__} {[(name, _text(each, parts, members)) for name, each in found]}"
    if isinstance(value, tuple):
        return f"{_name(type(value))} {[_text(each, parts) for each in value]}"
    if isinstance(value, frozenset):
        return f"frozenset {sorted(_text(each, parts) for each in value)}"
    if isinstance(value, CodeType):
        return _code(value, parts)
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        order = array.flags.c_contiguous, array.flags.f_contiguous
        return f"{type(value).__name__} {array.dtype} {array.shape} {order} {_hash(array.tobytes().hex())}"
    if isinstance(value, (np.dtype, types.Type)):
        return f"{type(value).__name__} {value}"
    if isinstance(value, enum.Enum):
        return _member(value)
    if isinstance(value, (type, FunctionType, Dispatcher)):
        return _definition(value, parts, members)
    if hasattr(value, "__qualname__") or isinstance(value, np.ufunc):
        return f"{_name(type(value))} {value.__name__}"
    try:
        return f"{_name(type(value))} {_hash(pickle.dumps(value, 4).hex())}"
    except Exception:  # numba takes no such value into a kernel
        return _name(type(value))


def _member(value: Any) -> str:
    return f"{_name(type(value))} {getattr(value, 'name', '')} {getattr(value, 'value', value)!r}"


def _definition(value: Any, parts: list[Any], members: tuple[str, ...]) -> str:
    """Return the name of a class, function or kernel, and add its definition to the parts."""
    if isinstance(value, Dispatcher):
        parts.append(value)
        return _name(value.py_func)
    if isinstance(value, FunctionType):
        if not _by_name(value.__module__):  # a numba extension, defined by its module
            parts.append(sys.modules.get(value.__module__, value))
        return _name(value)
    if issubclass(value, enum.Enum):
        return f"{_name(value)} {[_member(each) for each in value]}"
    if hasattr(value, "_fields") and hasattr(value, "_field_defaults"):
        parts.append(value)
        read = {name: vars(value)[name] for name in members if name in vars(value) and name not in value._fields}
        for member in read.values():
            own = getattr(member, "__func__", getattr(member, "fget", member))
            if isinstance(own, FunctionType):
                parts.append(own)
            else:
                parts.append(Reached(_name(value), _hash(_text(own, parts)), ()))
        return f"{_name(value)} {sorted(read)}"
    return _name(value)


# -------- code


def _code(code: CodeType, parts: list[Any]) -> str:
    """Return a hash of the instructions of a function and of their constants.

    Positions of constants are excluded, since they depend on docstrings, and local names except arguments.
    """
    if not code.co_flags & inspect.CO_OPTIMIZED:
        return _statements(code, parts)
    arguments = code.co_argcount + code.co_kwonlyargcount
    names = code.co_varnames[:arguments], code.co_names, code.co_freevars, code.co_cellvars
    head = (*names, code.co_posonlyargcount, code.co_flags & ~_HAS_DOCSTRING)
    steps, constants = bytearray(code.co_code), []
    for at, position in _arguments(code, _CONSTANT):
        steps[at + 1] = 0
        constants.append(_text(code.co_consts[position], parts))
    return _hash(str(head), steps.hex(), getattr(code, "co_exceptiontable", b"").hex(), *constants)


def _statements(code: CodeType, parts: list[Any]) -> str:
    """Return a hash of the statements of a module or class, without its docstring, which shifts all names."""
    texts = list[str]()
    offsets = [step.offset for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
    for step in dis.get_instructions(code):
        if step.opname == "STORE_NAME" and step.argval in _UNUSED:
            texts.pop()
        elif step.opcode in dis.hasconst:
            texts.append(f"{step.opname} {_text(code.co_consts[step.arg or 0], parts)}")
        elif step.opcode in dis.hasname:
            texts.append(f"{step.opname} {step.argval}")
        elif step.opcode in dis.hasjabs:  # Python 3.10: the docstring shifts where a jump leads, and not how far
            far = bisect_left(offsets, step.argval) - bisect_left(offsets, step.offset)
            texts.append(f"{step.opname} {far}")
        elif step.opname not in ("CACHE", "EXTENDED_ARG"):
            texts.append(f"{step.opname} {step.arg}")
    return _hash(*texts)


def _arguments(code: CodeType, mark: bytes) -> Iterator[tuple[int, int]]:
    plain = code.co_code
    marks = plain[::2].translate(_MARKS)
    at = marks.find(mark)
    while at >= 0:
        argument, high, before = plain[2 * at + 1], 8, at - 1
        while before >= 0 and plain[2 * before] == _EXTENDED:
            argument, high, before = argument | plain[2 * before + 1] << high, high + 8, before - 1
        yield 2 * at, argument
        at = marks.find(mark, at + 1)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _global_names(code: CodeType) -> dict[str, set[str]]:
    """Return the global names that code reads, each with the members read from it.

    If a name is not followed by an attribute, all attributes of the code count, since it may have another name.
    """
    names: dict[str, set[str]] = {}
    for each in _codes(code):
        for mark, shift in ((_GLOBAL, _SHIFT), (_NAME, 0)):
            for at, argument in _arguments(each, mark):
                members = _members(each, at + 2)
                names.setdefault(each.co_names[argument >> shift], set()).update(members or each.co_names)
    return names


def _members(code: CodeType, at: int) -> list[str]:
    """Return the chain of attributes read from an instruction on: `linalg`, `norm`."""
    plain, found, high = code.co_code, list[str](), 0
    while at < len(plain):
        operation, argument = plain[at], plain[at + 1] | high
        at, high = at + 2, argument << 8 if operation == _EXTENDED else 0
        if operation in _ATTRIBUTES:
            found.append(code.co_names[argument >> _ATTRIBUTES[operation]])
        elif operation not in (_CACHE, _EXTENDED):
            break
    return found


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()
