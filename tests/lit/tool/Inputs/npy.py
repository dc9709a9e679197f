"""Writes operands for `umbra run` and checks its results, with NumPy."""
import sys

import numpy as np

command, folder = sys.argv[1], sys.argv[2]
rng = np.random.default_rng(7)
a = rng.standard_normal((5, 37)).astype(np.float32)
b = rng.standard_normal((5, 37)).astype(np.float32)
d = rng.standard_normal(1001)
i = rng.integers(-1000, 1000, (3, 4, 5)).astype(np.int32)
narrow = {
    "h": rng.standard_normal((5, 37)).astype(np.float16),
    "q": rng.integers(-128, 128, (5, 37)).astype(np.int8),
    "u": rng.integers(0, 256, (5, 37)).astype(np.uint8),
    "s": rng.integers(-300, 300, (5, 37)).astype(np.int16),
    "l": rng.integers(-(2**60), 2**60, (5, 37)),
    "c": rng.integers(0, 2, (5, 37)).astype(np.bool_),
}


def load(name):
    return np.load(f"{folder}/{name}.npy")


if command == "write":
    np.save(f"{folder}/a.npy", a)
    np.save(f"{folder}/b_fortran.npy", np.asfortranarray(b))
    np.save(f"{folder}/d.npy", d)
    np.save(f"{folder}/i.npy", i)
    np.save(f"{folder}/big_endian.npy", a.astype(">f4"))
    np.save(f"{folder}/complex.npy", a.astype(np.complex64))
    for name, array in narrow.items():
        np.save(f"{folder}/{name}.npy", array)
    np.save(f"{folder}/number.npy", np.float32(3))
    np.save(f"{folder}/empty.npy", np.zeros((0, 37), np.float32))
elif command == "two":
    y, total = load("y"), load("total")
    assert y.dtype == np.float32 and y.shape == a.shape
    assert np.array_equal(y, a * b + np.float32(2))
    assert np.allclose(total, y.astype(np.float64).sum(axis=1), rtol=1e-5)
elif command == "f64":
    assert np.array_equal(load("yd"), d * d - 1)
elif command == "i32":
    assert np.array_equal(load("yi"), i * 3 + 1) and load("yi").dtype == np.int32
elif command == "narrow":
    wide = narrow["h"].astype(np.float32) * narrow["q"].astype(np.float32)
    assert load("y").dtype == np.float16 and np.array_equal(load("y"), wide.astype(np.float16))
    product = narrow["q"].astype(np.int32) * narrow["u"].astype(np.int32)
    assert np.array_equal(load("z"), product.astype(np.int8))
    assert np.array_equal(load("o"), narrow["c"] & (narrow["s"] > narrow["u"].astype(np.int16)))
    assert load("o").dtype == np.bool_
    assert np.array_equal(load("w"), narrow["l"] * 3) and load("w").dtype == np.int64
elif command == "empty":
    assert load("ye").shape == (0, 37)
elif command == "all":
    array = np.load(sys.argv[2])
    assert array.size > 0 and (array == array.dtype.type(sys.argv[3])).all(), array
else:
    sys.exit(f"unknown command {command}")
