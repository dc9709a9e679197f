"""The kernels from Python: host.py LIBRARY, with the runtime in it."""
import ctypes
import sys

import numpy as np


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("stride", ctypes.POINTER(ctypes.c_int64)), ("rank", ctypes.c_int), ("dtype", ctypes.c_int),
                ("device", ctypes.c_int), ("stream", ctypes.c_void_p)]


DTYPES = {np.dtype(np.float32): 0, np.dtype(np.float64): 1}


def tensor(array):
    integers = ctypes.c_int64 * max(array.ndim, 1)
    return Tensor(array.ctypes.data, integers(*array.shape),
                  integers(*(stride // array.itemsize for stride in array.strides)), array.ndim, DTYPES[array.dtype])


library = ctypes.CDLL(sys.argv[1])
library.umbra_error_message.restype = ctypes.c_char_p


def bias_swish(x, bias, beta, y):
    operands = [ctypes.byref(tensor(array)) for array in (x, bias, y)]
    if library.nn_bias_swish(operands[0], operands[1], ctypes.c_float(beta), operands[2]) != 0:
        raise ValueError(library.umbra_error_message().decode())


x = np.linspace(-4, 4, 5 * 33, dtype=np.float32).reshape(33, 5).T  # not dense
bias = np.linspace(0, 1, 33, dtype=np.float32)
y = np.empty((5, 33), np.float32)
bias_swish(x, bias, 2.0, y)
v = x.astype(np.float64) + bias
assert np.allclose(y, v / (1 + np.exp(-2 * v)), rtol=1e-6, atol=0), "bias_swish"
try:
    bias_swish(x, bias[:3], 2.0, y)
    sys.exit("an operand that does not fit was taken")
except ValueError as error:
    assert "dimension 0 of shape [3] must be 33" in str(error), error
print("Python host: done")
