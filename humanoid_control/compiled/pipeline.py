"""Our step of the compilation of a kernel, added to the steps of numba by its public interface.

Indices are taken as they are. numba tests the sign of each index, to count negative ones from the end, and the test
hides contiguous access from LLVM. Literal negative indices and slices work as in Python. With NUMBA_BOUNDSCHECK=1 a
computed negative index is an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numba import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import NumbaTypeError
from numba.core.ir import SetItem
from numba.core.typed_passes import NoPythonSupportedFeatureValidation

_TUPLE: Any = types.BaseTuple  # untyped
_INTEGER: Any = types.Integer


class KernelCompiler(CompilerBase):  # type: ignore[misc, unused-ignore]
    """Compilation steps of a kernel."""

    def define_pipelines(self) -> list[Any]:
        """Return the steps of numba with ours."""
        steps = DefaultPassBuilder.define_nopython_pipeline(self.state)
        steps.add_pass_after(_IndicesAsTheyAre, NoPythonSupportedFeatureValidation)
        steps.add_pass_after(_ArraysAreDeclared, NoPythonSupportedFeatureValidation)
        steps.finalize()
        return [steps]


@register_pass(mutates_CFG=False, analysis_only=False)
class _IndicesAsTheyAre(FunctionPass):  # type: ignore[misc, unused-ignore]
    """Declare computed indices of arrays as unsigned, which numba does not test."""

    _name = "humanoid_control_indices"

    def __init__(self) -> None:  # abstract in numba
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Change the signatures of array accesses; return whether one has changed."""
        changed = False
        for access, signature in list(state.calltypes.items()):
            is_set = isinstance(access, SetItem)
            if not (is_set or getattr(access, "op", "") == "getitem"):
                continue
            array, given, *value = signature.args
            if not isinstance(array, types.Array):
                continue
            index = _unsigned(given, state.typemap[access.index.name])
            if index != given:
                del state.calltypes[access]  # the mapping takes each key once
                state.calltypes[access] = signature.replace(args=(array, index, *value))
                changed = True
        return changed


def _unsigned(kind: Any, known: Any) -> Any:
    """Return the type of an index with unsigned integers, except negative literals.

    Args:
        kind: type in the signature of the access.
        known: type of the variable, which may be a literal.
    """
    if isinstance(kind, _TUPLE):
        if not isinstance(known, _TUPLE) or len(known) != len(kind):
            return kind
        return types.Tuple([_unsigned(*pair) for pair in zip(kind, known, strict=True)])
    if isinstance(known, types.IntegerLiteral) and known.literal_value < 0:
        return kind
    return types.uintp if isinstance(kind, _INTEGER) and kind.signed else kind


@register_pass(mutates_CFG=False, analysis_only=True)
class _ArraysAreDeclared(FunctionPass):  # type: ignore[misc, unused-ignore]
    """Refuse a kernel without reference counts that returns an array, or gets one from another kernel."""

    _name = "humanoid_control_allocates"

    def __init__(self) -> None:  # abstract in numba
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        """Raise NumbaTypeError where an array would never be released."""
        if not state.flags.nrt:
            models = state.targetctx.data_model_manager
            if any(models[kind].contains_nrt_meminfo() for kind in _owned(state)):
                name = f"{state.func_id.modname}.{state.func_id.func_qualname}"
                raise NumbaTypeError(f"{name} returns an array, or gets one from a kernel: declare `allocates=True`")
        return False


def _owned(state: Any) -> Iterable[Any]:
    """Yield the types of results that a kernel owns."""
    yield state.return_type
    for call, signature in state.calltypes.items():
        if getattr(call, "op", "") == "call" and isinstance(state.typemap[call.func.name], types.Dispatcher):
            yield signature.return_type
