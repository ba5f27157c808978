"""What gives equal results for equal arguments and keeps nothing: all else is not known to.

Whatever an algorithm reaches and is not here, and is not Python code that can be followed, is
refused. So a list is only ever too short.
"""

from __future__ import annotations

import functools
import operator
import random
import sys
from types import ModuleType
from typing import Any

import numpy as np

_BUILTINS = """
abs all any ascii bin bool bytearray bytes callable chr classmethod complex delattr dict divmod
enumerate filter float format frozenset getattr hasattr hex int isinstance issubclass iter len list
map max min next object oct ord pow print property range repr reversed round set setattr slice
sorted staticmethod str sum super tuple type vars zip NotImplemented Ellipsis __build_class__
"""

_NUMPY = """
False_ ScalarType True_ abs absolute acos acosh add all allclose amax amin angle any append
apply_along_axis apply_over_axes arange arccos arccosh arcsin arcsinh arctan arctan2 arctanh argmax
argmin argpartition argsort argwhere around array array_equal array_equiv array_split asanyarray
asarray asarray_chkfinite ascontiguousarray asfortranarray asin asinh astype atan atan2 atanh
atleast_1d atleast_2d atleast_3d average bartlett bincount bitwise_and bitwise_count bitwise_invert
bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor blackman block bool bool_
broadcast_arrays broadcast_shapes broadcast_to byte c_ can_cast cbrt cdouble ceil choose clip
column_stack common_type complex128 complex64 compress concat concatenate conj conjugate convolve
copy copysign copyto corrcoef correlate cos cosh count_nonzero cov cross csingle cumprod cumsum
cumulative_prod cumulative_sum deg2rad degrees delete diag diag_indices diag_indices_from diagflat
diagonal diff digitize divide divmod dot double dsplit dstack dtype e ediff1d einsum einsum_path
empty empty_like equal errstate euler_gamma exp exp2 expand_dims expm1 extract eye fabs
fill_diagonal finfo fix flatnonzero flip fliplr flipud float16 float32 float64 float_power floating
floor floor_divide fmax fmin fmod frexp fromfunction fromiter full full_like gcd generic geomspace
gradient greater greater_equal half hamming hanning heaviside histogram histogram2d
histogram_bin_edges histogramdd hsplit hstack hypot i0 identity iinfo imag in1d index_exp indices
inexact inf info inner insert int16 int32 int64 int8 int_ intc integer interp intersect1d intp
invert isclose iscomplex iscomplexobj isdtype isfinite isin isinf isnan isneginf isposinf isreal
isrealobj isscalar issubdtype iterable ix_ kaiser kron lcm ldexp left_shift less less_equal lexsort
linspace log log10 log1p log2 logaddexp logaddexp2 logical_and logical_not logical_or logical_xor
logspace long longdouble longlong mask_indices matmul matrix_transpose matvec max maximum mean
median meshgrid mgrid min min_scalar_type minimum mod modf moveaxis multiply nan nan_to_num
nanargmax nanargmin nancumprod nancumsum nanmax nanmean nanmedian nanmin nanpercentile nanprod
nanquantile nanstd nansum nanvar ndarray ndenumerate ndim ndindex negative newaxis nextafter nonzero
not_equal number ogrid ones ones_like outer packbits pad partition percentile permute_dims pi
piecewise place poly polyadd polyder polydiv polyfit polyint polymul polysub polyval positive pow
power prod product promote_types ptp put put_along_axis putmask quantile r_ rad2deg radians ravel
ravel_multi_index real real_if_close reciprocal remainder repeat require reshape resize result_type
right_shift rint roll rollaxis roots rot90 round row_stack s_ searchsorted select setdiff1d
setxor1d shape short sign signbit signedinteger sin sinc single sinh size sort spacing split sqrt
square squeeze stack std subtract sum swapaxes take take_along_axis tan tanh tensordot tile trace
transpose trapezoid trapz tri tril tril_indices tril_indices_from trim_zeros triu triu_indices
triu_indices_from true_divide trunc ubyte uint uint16 uint32 uint64 uint8 uintc uintp ulong
ulonglong union1d unique unique_all unique_counts unique_inverse unique_values unpackbits
unravel_index unsignedinteger unstack unwrap ushort vander var vdot vecdot vecmat vsplit vstack
where zeros zeros_like
"""

#: Names of modules: "*" is all that are public.
_MODULES = {
    "builtins": _BUILTINS,
    "numpy": _NUMPY,
    "numpy.linalg": "*",
    "numpy.fft": "*",
    "math": "*",
    "cmath": "*",
    "operator": "*",
    "itertools": "*",
    "bisect": "*",
    "heapq": "*",
    "collections": "*",
    "numbers": "*",
    "fractions": "Fraction",
    "decimal": "Decimal",
    "abc": "ABC ABCMeta abstractmethod",
    "enum": "*",
    "typing": "*",
    "types": "SimpleNamespace MappingProxyType",
    "copy": "copy deepcopy",
    "dataclasses": "asdict astuple dataclass field fields replace",
    "contextlib": "closing contextmanager nullcontext suppress ExitStack",
    "functools": "cache cached_property cmp_to_key lru_cache partial reduce total_ordering wraps",
    # What is written is not read.
    "warnings": "warn",
    "logging": "debug info warning error exception critical log",
    "scipy.linalg": "*",
    "scipy.special": "*",
    "exactfed._native": ("Compressor identity natural natural_dithering qsgd rand_k sign top_k"),
}

#: Modules in Python whose functions and classes keep nothing beyond their objects.
ROOTS = frozenset(
    """
    abc collections contextlib copy dataclasses enum fractions functools numbers reprlib types
    typing
    """.split()
)

#: What makes a generator of random numbers: known where it is given a seed.
SEEDED: tuple[Any, ...] = (
    random.Random,
    np.random.default_rng,
    np.random.Generator,
    np.random.RandomState,
    np.random.SeedSequence,
    np.random.PCG64,
    np.random.PCG64DXSM,
    np.random.MT19937,
    np.random.Philox,
    np.random.SFC64,
)

#: Attributes that lead out of what is followed, or keep what is not: frames, the counts of caches,
#: addresses, files, documentation, what is registered.
HIDDEN = frozenset(
    """
    gi_frame gi_code gi_yieldfrom cr_frame f_back f_builtins f_code f_globals f_locals f_trace
    tb_frame tb_next cache_info ctypes tofile dump seed_seq _seed_seq _recorder register
    __globals__ __builtins__ __subclasses__ __code__ __closure__ __weakref__ __sizeof__
    __array_interface__ __reduce__ __reduce_ex__ __getstate__ __doc__ __annotations__
    __dataclass_fields__ __dataclass_params__ __traceback__ __context__ __cause__ __wrapped__
    """.split()
)

#: What finds an attribute by a name that may be computed: functions, and attributes.
BY_NAME = frozenset(
    map(id, (getattr, setattr, delattr, hasattr, vars, operator.attrgetter, operator.methodcaller))
)
INDIRECT = frozenset("__dict__ __getattribute__ __getattr__ __setattr__ __delattr__".split())


def pure() -> dict[int, Any]:
    """The objects that are known, by identity."""
    return _pure(tuple(name for name in _MODULES if name in sys.modules))


@functools.lru_cache(maxsize=1)
def _pure(modules: tuple[str, ...]) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for name in modules:
        module, names = sys.modules[name], _MODULES[name]
        chosen = _public(module) if names == "*" else names.split()
        values = [getattr(module, one) for one in chosen if hasattr(module, one)]
        found |= {id(value): value for value in values if not isinstance(value, ModuleType)}
    return found


def _public(module: ModuleType) -> list[str]:
    names = getattr(module, "__all__", None) or dir(module)
    return [name for name in names if not name.startswith("_")]


#: Modules whose names are listed: what is not listed is not known.
LISTED = frozenset(_MODULES)
