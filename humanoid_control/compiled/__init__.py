"""Compilation: kernels, records that they take, vector tiles, and a cache that knows what each kernel contains.

The rest of the package imports the compiler from here only. Kernels import the modules:

    from humanoid_control.compiled.array_types import F1
    from humanoid_control.compiled.jit import kernel

    @kernel
    def squared_norm(v: F1) -> float:
        total = 0.0
        for k in range(len(v)):
            total += v[k] * v[k]
        return total

| module | contents |
| --- | --- |
| `jit` | the decorators `kernel` and `inlined`, and kernels on disk |
| `packed` | records passed as tables of addresses |
| `tiles` | vectors of eight numbers and tiles of 8 x 8 |
| `array_types` | declarations of arrays in records and signatures |
| `pipeline`, `linking`, `stamp`, `settings` | the parts behind the decorators |

numba has no public interface for three of its parts, which are replaced here and nowhere else: the cache of a kernel
(`jit`), the class of compiled libraries (`linking`), and the class lookup of results (`linking`).
`HUMANOID_PLAIN_NUMBA=1` leaves the last two, and our step of the compilation, out.
"""
