"""Compilation of kernels by numba, cached on disk until compiled code or values change.

| variable | effect |
|---|---|
| `NUMBA_DISABLE_JIT=1` | kernels run as plain Python, for a debugger and for coverage |
| `NUMBA_BOUNDSCHECK=1` | kernels are compiled with checked indices |
| `NUMBA_CACHE_DIR` | folder of the compiled kernels |
| `HUMANOID_PLAIN_NUMBA=1` | plain numba, without the changes of this file and of `numerics.packed` |
"""

from __future__ import annotations

import ast
import contextlib
import functools
import inspect
import os
import struct
import textwrap
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

import llvmlite.binding as llvm
import numba
from numba import njit, types
from numba.core import caching, codegen, serialize
from numba.core.dispatcher import Dispatcher
from numba.core.errors import NumbaError
from numba.np import arrayobj

from humanoid_control.kernel_stamp import stamp, stamp_of, stamp_of_types

config: Any = numba.config  # untyped
Function = TypeVar("Function", bound=Callable[..., Any])
PACKAGE = __name__.rpartition(".")[0]
_NEEDED = (
    "_unserialize",
    "_get_module_for_linking",
    "_finalize_final_module",
    "_set_compiled_object",
    "_get_compiled_object",
    "add_linking_library",
    "finalize",
    "serialize_using_object_code",
)
_LIBRARY: Any = vars(codegen.CPUCodeLibrary) | vars(codegen.CodeLibrary)
# Separates faults of numba from faults of our changes, and allows a new numba that is incompatible with them.
PLAIN_NUMBA = os.environ.get("HUMANOID_PLAIN_NUMBA", "") not in ("", "0")
_PATCHED = not (config.DISABLE_JIT or PLAIN_NUMBA) and all(name in _LIBRARY for name in _NEEDED)


# No C program calls a kernel. Reference counting and inlining are set for each kernel; otherwise they would be those of
# its first caller.
_OPTIONS: Any = {"error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": True, "forceinline": False}


def kernel(function: Function) -> Function:
    """Decorator: compile at the first call, and cache on disk."""
    compiled: Function = _guarded(njit(**_OPTIONS)(function))
    return compiled


def inlined(function: Function) -> Function:
    """Decorator for parts of a vectorised loop, which a call would prevent."""
    compiled: Function = _guarded(njit(**_OPTIONS | {"forceinline": True})(function))
    return compiled


def _guarded(compiled: Any) -> Any:
    """Cache a kernel under the stamp of everything compiled into it."""
    if not config.DISABLE_JIT:
        if not PLAIN_NUMBA:
            _compile_by_source(compiled)
        compiled._cache = _KernelCache(compiled)  # numba offers no other way; test_jit.py fails if it changes
    return compiled


class _KernelPlace(caching.CompileResultCacheImpl):
    """Place of a cached kernel, independent of its line number, unlike in numba."""

    def get_filename_base(self, fullname: str, abiflags: str) -> str:
        name: str = super().get_filename_base(fullname, abiflags)
        return name.replace(f"-{self.locator.get_disambiguator()}.py", ".py")


class _KernelFile(caching.IndexDataCacheFile):
    """Cached forms of a kernel, valid for the same stamp."""

    def __init__(self, folder: str, name: str, kernel: Any) -> None:
        super().__init__(folder, name, None)
        self._kernel = kernel

    def _load_index(self) -> Any:
        if self._source_stamp is None:  # only now are all names of the kernel's module defined
            self._source_stamp = stamp(
                self._kernel, {"boundscheck": config.BOUNDSCHECK, "apart": _PATCHED, "plain": PLAIN_NUMBA}
            )
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # cached for records that have been renamed or moved
            return {}

    def load(self, key: Any) -> Any:
        data = super().load(key)
        if not _PATCHED or data is None:
            return data
        (name, kind, parts), *rest = data
        return ((name, kind, (*parts, functools.partial(super().load, key))), *rest)


class _KernelCache(caching.FunctionCache):
    """Cached forms of a kernel by argument types, including records and own types."""

    _impl_class = _KernelPlace

    def __init__(self, kernel: Any) -> None:
        super().__init__(kernel.py_func)
        self._cache_file = _KernelFile(self.cache_path, self._impl.filename_base, kernel)

    def _index_key(self, signature: Any, code: Any) -> Any:
        cells = [cell.cell_contents for cell in self._py_func.__closure__ or ()]
        return signature, code.magic_tuple(), stamp_of_types(getattr(signature, "args", signature)), stamp_of(*cells)

    def save_overload(self, signature: Any, data: Any) -> None:
        with contextlib.suppress(_ChangedOnDiskError):  # the next process compiles it again
            super().save_overload(signature, data)


# -------- references to arrays

_BUILTINS = frozenset(("abs", "bool", "divmod", "enumerate", "float", "int", "len", "max", "min", "pow", "range"))
_BUILTINS |= {"reversed", "round", "tuple", "zip"}
_OF_NUMBERS = frozenset(("abs", "arccos", "arcsin", "arctan", "arctan2", "bool_", "ceil", "copysign", "cos", "exp"))
_OF_NUMBERS |= {"expm1", "float64", "floor", "hypot", "int64", "isfinite", "isinf", "isnan", "log", "round", "sign"}
_OF_NUMBERS |= {"sin", "sqrt", "tan", "tanh"}  # of numpy
_MAKERS = (ast.List, ast.Set, ast.Dict, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.JoinedStr)


def _compile_by_source(compiled: Any) -> None:
    """Count array references only in kernels that make, copy or return arrays; take indices as they are.

    A kernel that only reads and writes its arguments needs no counts, since its caller owns them. It is tried if the
    source calls nothing that could make an array, and verified after compilation.
    """
    compiler = compiled._compiler  # numba offers no other way; test_jit.py fails should these names change
    compile_core, options = compiler._compile_core, compiler.targetoptions

    def compile_as_needed(args: Any, return_type: Any) -> Any:
        _from_the_end.append(_counts_from_the_end(compiled.py_func))
        try:
            return compile_uncounted(args, return_type)
        finally:
            _from_the_end.pop()

    def compile_uncounted(args: Any, return_type: Any) -> Any:
        if not _calls_no_makers(compiled.py_func):
            return compile_core(args, return_type)
        compiler.targetoptions = options | {"_nrt": False}
        try:
            result = compile_core(args, return_type)
        except NumbaError:  # it makes an array, or has another error, which the second attempt reports
            result = None
        finally:
            compiler.targetoptions = options
        return result if result and _has_only_its_own(result) else compile_core(args, return_type)

    compiler._compile_core = compile_as_needed


@functools.cache
def _tree(function: Any) -> Any:
    """Return the syntax tree of a function; None if its source is unknown or has changed."""
    try:
        tree: Any = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, SyntaxError):
        return None
    return tree if getattr(tree, "name", "") == function.__name__ else None


def _calls_no_makers(function: Any) -> bool:
    """Return True if a function calls only kernels, records and numeric functions; evaluated at compilation."""
    tree = _tree(function)
    if tree is None:
        return False
    called = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if any(isinstance(node, (*_MAKERS, ast.MatMult)) for node in ast.walk(tree)):
        return False
    return all(_is_no_maker(each, function.__globals__) for each in called)


def _is_no_maker(called: ast.expr, names: Mapping[str, Any]) -> bool:
    if isinstance(called, ast.Attribute):
        home = called.value.id if isinstance(called.value, ast.Name) else ""
        return home == "math" or (home == "np" and called.attr in _OF_NUMBERS)
    if not isinstance(called, ast.Name):
        return False
    known = names.get(called.id)
    if known is None:
        return called.id in _BUILTINS or called.id.endswith("Error")
    if isinstance(known, type):
        return hasattr(known, "_fields")
    # Package functions that are not kernels are numba extensions (`type_callable`), which make no arrays.
    home = str(getattr(known, "__module__", ""))
    return isinstance(known, Dispatcher) or home == "math" or home.startswith(f"{PACKAGE}.")


def _has_only_its_own(result: Any) -> bool:
    """Return True if a compiled kernel neither returns arrays nor gets any from another kernel."""
    models, told = result.target_context.data_model_manager, result.type_annotation
    kept = [result.signature.return_type]
    for call, signature in told.calltypes.items():
        if getattr(call, "op", "") == "call" and isinstance(told.typemap[call.func.name], types.Dispatcher):
            kept.append(signature.return_type)
    return not any(models[kind].contains_nrt_meminfo() for kind in kept)


def are_compiled(kernels: Iterable[Any]) -> bool:
    """Return True if all kernels are compiled from their present sources, in memory or on disk."""
    return bool(config.DISABLE_JIT) or all(k.signatures or k._cache._cache_file._load_index() for k in kernels)


# -------- indices

_from_the_end = [False]  # whether the kernel in compilation has indices from the end


def _take_indices_as_they_are() -> None:
    """Take indices as they are, except in kernels with literal negative indices.

    numba tests the sign of each index, which hides contiguous access from the compiler. Slices work as in Python. With
    NUMBA_BOUNDSCHECK=1 a negative index is an error.
    """
    arrays: Any = arrayobj  # numba offers no other way; test_jit.py fails should these names change
    fix: Any = getattr(arrays, "fix_integer_index", None)
    own = f"_ZN{len(PACKAGE)}{PACKAGE}"

    def fix_index(context: Any, builder: Any, kind: Any, index: Any, size: Any) -> Any:
        if _from_the_end[-1] or not kind.signed or not builder.function.name.startswith(own):
            return fix(context, builder, kind, index, size)
        return context.cast(builder, index, kind, types.intp)

    if fix:  # otherwise all indices are tested
        arrays.fix_integer_index = fix_index


def _counts_from_the_end(function: Any) -> bool:
    """Return True if an index is a negative literal, or the name of a negative constant."""
    tree = _tree(function)
    if tree is None:
        return True
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript):
            parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for part in (each for whole in parts if not isinstance(whole, ast.Slice) for each in ast.walk(whole)):
                known = function.__globals__.get(part.id) if isinstance(part, ast.Name) else 0
                negative = isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.USub)
                if negative or (isinstance(known, int) and known < 0):
                    return True
    return False


# -------- linking and loading of kernels

_ELF = b"\x7fELF\x02\x01"  # 64 bits, little endian
_SYMBOL_TABLE = 2  # kind of section
_FUNCTION, _GLOBAL = 2, 1  # kind and binding of a symbol
_WRAPPERS = ("_ZN7cpython", "cfunc.")  # entries from Python and C
_LARGE = 24_000  # bytes of machine code above which a kernel is called, not copied


class _ChangedOnDiskError(Exception):
    """A kernel was loaded from disk, but differs there now."""


class Symbol(NamedTuple):
    """Symbol that an object file defines.

    Attributes:
        size: [bytes].
        strong: no other file may define it.
    """

    name: str
    size: int
    function: bool
    strong: bool


def defined_symbols(code: bytes) -> list[Symbol]:
    """Return the symbols that an object file (64-bit little-endian ELF) defines."""
    table, size, count = *struct.unpack_from("<Q", code, 0x28), *struct.unpack_from("<HH", code, 0x3A)
    sections = [struct.unpack_from("<IIQQQQIIQQ", code, table + k * size) for k in range(count)]
    symbols = []
    for _, kind, _, _, offset, length, link, *_ in sections:
        if kind == _SYMBOL_TABLE:
            strings = sections[link][4]
            for name, info, _, section, _, size in struct.iter_unpack("<IBBHQQ", code[offset : offset + length]):
                if name and section:
                    text = code[strings + name : code.index(b"\0", strings + name)].decode()
                    symbols.append(Symbol(text, size, info & 15 == _FUNCTION, info >> 4 == _GLOBAL))
    return symbols


def _entry(symbols: list[Symbol]) -> str:
    """Return the name of the package kernel of an object file, or an empty text."""
    start = f"_ZN{len(PACKAGE)}{PACKAGE}"
    return next((s.name for s in symbols if s.strong and s.function and s.name.startswith(start)), "")


def _code_of(library: Any) -> bytes:
    """Return the machine code of a separate library, compiled or read again from disk."""
    if "_read" not in vars(library):
        return bytes(library._get_compiled_object())
    if code := library._read():
        return bytes(code)
    raise _ChangedOnDiskError(library.name)


def _serialize(library: Any) -> Any:
    """Return the cached state of a library: large libraries that it calls replace their intermediate code."""
    library._ensure_finalized()
    shared = b"" if library.entry else library._get_module_for_linking().as_bitcode()
    apart = [(each.name, each.entry, _code_of(each)) for each in library.apart]
    return library.name, "object", (library._get_compiled_object(), shared, library.entry, apart)


def _link_apart() -> None:
    """Call large kernels in place, and load only machine code of cached kernels.

    Only small kernels are copied into their callers. A cached kernel contains the machine code of large ones that it
    calls, so its file is complete; a process uses the first copy that it meets. The intermediate code of a loaded
    kernel is parsed only to compile a copy into another kernel.
    """
    library: Any = codegen.CPUCodeLibrary  # numba offers no other way; test_jit.py fails should these names change
    if hasattr(library, "apart"):  # another copy of this file was loaded
        return
    finalize, link, load = library.finalize, library._get_module_for_linking, library._unserialize.__func__
    large: Any = weakref.WeakValueDictionary()  # separate libraries by their entries
    library.apart, library.entry = (), ""  # separate libraries that a library calls; its own entry if it is one

    def finalize_apart(self: Any) -> None:
        called = dict.fromkeys(self._linking_libraries)
        self._linking_libraries = [each for each in called if not each.entry]
        self.apart = tuple(dict.fromkeys(a for each in called for a in (*each.apart, *([each] * bool(each.entry)))))
        for each in self.apart:
            self._reload_init.update(each._reload_init)
        finalize(self)
        if (code := self.__dict__.get("_compiled_object")) and code.startswith(_ELF):
            symbols = defined_symbols(code)
            size = sum(s.size for s in symbols if s.function and not s.name.startswith(_WRAPPERS))
            entry = _entry(symbols) if size > _LARGE else ""
            if entry and b"alwaysinline" not in self._final_module.get_function(entry).attributes:
                self.entry, large[entry] = entry, self

    def place(generator: Any, name: str, entry: str, code: bytes, read: Any) -> Any:
        if entry in large:
            return large[entry]
        loaded = generator.create_library(name)
        loaded.enable_object_caching()
        loaded._set_compiled_object(code)
        loaded._finalize_final_module()
        generator._engine._defined_symbols |= {symbol.name for symbol in defined_symbols(code)}
        if entry:
            loaded.entry, loaded._read, large[entry] = entry, read, loaded
        return loaded

    def unserialize(cls: Any, generator: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != "object":
            return load(cls, generator, state)
        code, shared, entry, called, *read = data

        def reader(entry: str, code: bytes) -> Callable[[], bytes | None]:
            if not read:  # a foreign kernel that calls one of this package
                return lambda: code

            def again() -> bytes | None:
                found = read[0]()
                code, _, own, called = found[0][2] if found else (None, None, None, ())
                return code if own == entry else next((code for _, name, code in called if name == entry), None)

            return again

        # Place called libraries before their callers: the addresses of calls are resolved at once.
        apart = tuple(place(generator, name, entry, code, reader(entry, code)) for name, entry, code in called)
        loaded = place(generator, name, entry, code, reader(entry, code))
        if not entry:
            loaded._unparsed = shared
        loaded.apart = apart
        return loaded

    def module_for_linking(self: Any) -> Any:
        if unparsed := self.__dict__.pop("_unparsed", None):
            self._shared_module = llvm.parse_bitcode(unparsed)
        return link(self)

    library.finalize, library.serialize_using_object_code = finalize_apart, _serialize
    library._unserialize, library._get_module_for_linking = classmethod(unserialize), module_for_linking


def _ask_without_python() -> None:
    """Cache the class lookup of kernel results, so that it runs no Python.

    numba does it at each call; an interrupt during the Python lookup crashes the process.
    """
    known: Any = serialize  # numba offers no other way; test_jit.py fails should the name change
    if hasattr(known, "_numba_unpickle") and not hasattr(known._numba_unpickle, "cache_info"):
        known._numba_unpickle = functools.cache(known._numba_unpickle)


if not PLAIN_NUMBA:
    _ask_without_python()
    _take_indices_as_they_are()
if _PATCHED:
    _link_apart()
