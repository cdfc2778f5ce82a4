"""An array module that behaves as CuPy does, on NumPy, so that tests run the paths of a device without one.

An array of it never becomes a NumPy array by itself: only ``.get()`` and ``asnumpy`` bring values to the host, and
only ``array`` and ``asarray`` take them to the "device", as a copy. Everything else that meets a NumPy array
raises TypeError, as CuPy does. Reductions return arrays of no dimension, not scalars. What CuPy 14 lacks is
absent, and so are its random numbers, because noise is drawn on the host. `skdp.kernels.is_cupy` takes these
arrays for CuPy's:

    with strict_arrays.installed() as cupy:     # `import cupy` finds this module in here
        x = cupy.asarray(images)

``RawModule`` is there only if a test brings one (tests/gpu_sources/host_kernels.py compiles kernels for the host).
"""

import contextlib
import sys
import types

import numpy as np
import pytest
import scipy.sparse as sp

# Public names of numpy that CuPy 14.2 has not: dir(numpy) less dir(cupy), and its random numbers.
MISSING = """
False_ True_ ScalarType asmatrix block bmat bytes_ char character clongdouble complex256 core ctypeslib
datetime64 dtypes einsum_path emath errstate flexible float128 frompyfunc geomspace geterr
histogram_bin_edges insert longdouble ma matrix matvec memmap nanpercentile nanquantile ndenumerate nditer
nested_iters object_ random rec recarray seterr spacing str_ strings testing timedelta64 unstack vecdot
vecmat void
"""
MISSING_LINALG = "diagonal matrix_norm multi_dot outer svdvals tensordot trace vecdot vector_norm"
# What an array of CuPy can do, of NumPy's methods and operators.
METHODS = """
all any argmax argmin argpartition argsort astype choose clip compress conj copy cumprod cumsum diagonal dot
fill flatten item max mean min nonzero partition prod put ravel repeat reshape round searchsorted sort
squeeze std sum swapaxes take tobytes tolist trace transpose var view
"""
OPERATORS = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift"
COMPARISONS = "lt le gt ge eq ne"
# From the host to the device: the only functions that take NumPy arrays and lists of numbers.
FROM_HOST = {"array", "asarray", "asanyarray"}


class ndarray:
    """An array on the "device"; `_host` holds its values."""

    __hash__ = None

    def __init__(self, host):
        self._host = host

    def get(self, order="C"):
        """A copy of the values as a NumPy array."""
        return np.array(self._host, order=order)

    def __array__(self, dtype=None, copy=None):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()`")

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method not in ("__call__", "reduce", "accumulate", "at", "outer"):
            return NotImplemented
        return on_device(getattr(ufunc, method)(*on_host(inputs), **on_host(options)))

    def __array_function__(self, function, kinds, arguments, options):
        part = function.__module__.removeprefix("numpy").lstrip(".")
        namespace = getattr(MODULE, part) if part in ("linalg", "fft") else MODULE
        return getattr(namespace, function.__name__)(*arguments, **options)

    @property
    def flags(self):
        """Those that CuPy has: nothing on a device can be made read-only."""
        names = ("c_contiguous", "f_contiguous", "owndata")
        return types.SimpleNamespace(**{name: getattr(self._host.flags, name) for name in names})

    def __getitem__(self, key):
        return on_device(self._host[on_host(key)])

    def __setitem__(self, key, value):
        self._host[on_host(key)] = on_host(value)

    def __len__(self):
        return len(self._host)

    def __iter__(self):
        return (on_device(part) for part in self._host)

    def __bool__(self):
        return bool(self._host)

    def __int__(self):
        return int(self._host)

    def __float__(self):
        return float(self._host)

    def __repr__(self):
        return f"strict {self._host!r}"

    def __reduce__(self):
        return ndarray, (self._host,)

    def __deepcopy__(self, memo):
        return ndarray(self._host.copy())


# As the class of CuPy, which `is_cupy` knows by the name of its module.
ndarray.__module__ = "cupy"


def on_host(value):
    """The values behind strict arrays, also in tuples, lists and dicts; TypeError for a NumPy array among them."""
    if isinstance(value, ndarray):
        return value._host
    if isinstance(value, np.ndarray):
        raise TypeError(f"Unsupported type {np.ndarray}: a NumPy array met an array of the device")
    if isinstance(value, slice):
        return slice(*(on_host(part) for part in (value.start, value.stop, value.step)))
    if isinstance(value, tuple | list):
        return type(value)([on_host(part) for part in value])
    if isinstance(value, dict):
        return {name: on_host(part) for name, part in value.items()}
    return value


def on_device(value):
    """NumPy's arrays and numbers as strict arrays, also in tuples and lists; anything else as it is."""
    if isinstance(value, np.ndarray | np.generic):
        return ndarray(np.asarray(value))
    if isinstance(value, tuple | list):
        return type(value)([on_device(part) for part in value])
    return value


def _method(name):
    def method(self, *arguments, **options):
        result = getattr(self._host, name)(*on_host(arguments), **on_host(options))
        return result if name in ("tobytes", "tolist") else on_device(result)

    return method


def _operator(name):
    def operator(self, *others):
        # CuPy refuses lists where NumPy would convert them.
        if any(isinstance(other, list | tuple) for other in others):
            raise TypeError(f"Unsupported type {type(others[0])}")
        return on_device(getattr(self._host, name)(*on_host(others)))

    return operator


def _in_place(name):
    def operator(self, other):
        changed = getattr(self._host, name)(on_host(other))
        assert changed is self._host
        return self

    return operator


for _name in METHODS.split():
    setattr(ndarray, _name, _method(_name))
for _name in OPERATORS.split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
    setattr(ndarray, f"__r{_name}__", _operator(f"__r{_name}__"))
    if _name != "matmul":  # CuPy has no @=
        setattr(ndarray, f"__i{_name}__", _in_place(f"__i{_name}__"))
for _name in COMPARISONS.split():
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("neg", "pos", "abs", "invert"):
    setattr(ndarray, f"__{_name}__", _operator(f"__{_name}__"))
for _name in ("dtype", "shape", "ndim", "size", "nbytes", "itemsize", "strides"):
    setattr(ndarray, _name, property(lambda self, name=_name: getattr(self._host, name)))
for _name in ("T", "real", "imag"):
    setattr(ndarray, _name, property(lambda self, name=_name: on_device(getattr(self._host, name))))


class Function:
    """A function or a ufunc of NumPy that takes strict arrays and nothing of the host."""

    def __init__(self, function, from_host=False):
        self._function, self._from_host = function, from_host

    def __call__(self, *arguments, **options):
        function = self._function
        if self._from_host:
            return ndarray(np.array(to_copy(arguments[0]), *arguments[1:], **options))
        if isinstance(function, np.ufunc) and any(isinstance(a, list | tuple) for a in arguments):
            raise TypeError(f"Unsupported type {list} for {function.__name__}")
        return on_device(function(*on_host(arguments), **on_host(options)))

    def __getattr__(self, name):
        if name not in ("reduce", "accumulate", "at", "outer", "reduceat"):
            raise AttributeError(name)
        return Function(getattr(self._function, name))


def to_copy(value):
    """What functions of `FROM_HOST` may take: strict arrays, NumPy arrays, numbers and lists of them."""
    if isinstance(value, ndarray):
        return value._host
    return [to_copy(part) for part in value] if isinstance(value, list | tuple) else value


class Module(types.ModuleType):
    """The functions of a part of NumPy, for strict arrays."""

    def __init__(self, name, part, missing):
        super().__init__(name)
        self._part, self._missing = part, missing.split()

    def __getattr__(self, name):
        if name.startswith("__") or name in self._missing:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(self._part, name)
        if isinstance(value, types.ModuleType):
            return Module(f"{self.__name__}.{name}", value, "")
        if isinstance(value, type) or not callable(value):
            return value
        return Function(value, from_host=name in FROM_HOST)


MODULE = Module("cupy", np, MISSING)
MODULE.ndarray = ndarray
MODULE.asnumpy = lambda array: array.get() if isinstance(array, ndarray) else np.asarray(array)
MODULE.linalg = Module("cupy.linalg", np.linalg, MISSING_LINALG)
MODULE.get_array_module = lambda *arrays: (
    MODULE if any(isinstance(array, ndarray | csr_matrix) for array in arrays) else np
)


class csr_matrix:
    """A CSR matrix on the "device"; what the package asks of ``cupyx.scipy.sparse.csr_matrix``."""

    format = "csr"
    ndim = 2

    def __init__(self, matrix):
        """``matrix`` is a CSR matrix of SciPy."""
        self.shape = matrix.shape
        self.data, self.indices, self.indptr = (
            MODULE.asarray(part) for part in (matrix.data, matrix.indices, matrix.indptr)
        )

    @property
    def dtype(self):
        return self.data.dtype

    def get(self):
        """A copy on the host, with indices of the same type."""
        matrix = sp.csr_matrix(self.shape, dtype=self.dtype)
        matrix.data, matrix.indices, matrix.indptr = (
            part.get() for part in (self.data, self.indices, self.indptr)
        )
        return matrix

    def copy(self):
        return csr_matrix(self.get())

    def sum_duplicates(self):
        matrix = self.get()
        matrix.sum_duplicates()
        self.__init__(matrix)

    def astype(self, dtype):
        return csr_matrix(self.get().astype(dtype))

    def __getitem__(self, key):
        return csr_matrix(self.get()[on_host(key)])

    def __matmul__(self, other):
        return on_device(self.get() @ on_host(other))


csr_matrix.__module__ = "cupyx.scipy.sparse"


@contextlib.contextmanager
def installed(raw_module=None):
    """Let ``import cupy`` find this module; ``raw_module`` stands for ``cupy.RawModule``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "cupy", MODULE)
        if raw_module is not None:
            patch.setattr(MODULE, "RawModule", raw_module, raising=False)
        yield MODULE
