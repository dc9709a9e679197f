"""Writes operands for `umbra run` and checks its results, with NumPy."""
import sys

import numpy as np

command, folder = sys.argv[1], sys.argv[2]
rng = np.random.default_rng(7)
a = rng.standard_normal((5, 37)).astype(np.float32)
b = rng.standard_normal((5, 37)).astype(np.float32)
d = rng.standard_normal(1001)
i = rng.integers(-1000, 1000, (3, 4, 5)).astype(np.int32)


def load(name):
    return np.load(f"{folder}/{name}.npy")


if command == "write":
    np.save(f"{folder}/a.npy", a)
    np.save(f"{folder}/b_fortran.npy", np.asfortranarray(b))
    np.save(f"{folder}/d.npy", d)
    np.save(f"{folder}/i.npy", i)
    np.save(f"{folder}/big_endian.npy", a.astype(">f4"))
    np.save(f"{folder}/complex.npy", a.astype(np.complex64))
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
elif command == "empty":
    assert load("ye").shape == (0, 37)
else:
    sys.exit(f"unknown command {command}")
