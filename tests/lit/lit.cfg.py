import os
import re
import shutil
import subprocess

import lit.formats

config.name = "umbra"
config.test_format = lit.formats.ShTest(True)
config.suffixes = [".umb", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.environment["UMBRA_CACHE_DIR"] = config.cache
config.environment["PATH"] = os.pathsep.join([os.path.dirname(config.filecheck), os.environ["PATH"]])
for path in ("HOME", "TMPDIR"):
    if path in os.environ:
        config.environment[path] = os.environ[path]
config.substitutions.append(("%umbra", config.umbra))
config.substitutions.append(("%extract", config.extract))
config.substitutions.append(("%jit", config.jit))
config.substitutions.append(("%python", config.python))
config.substitutions.append(("%root", config.project))
config.substitutions.append(("%digits", config.digits))
config.substitutions.append(("%bench_gpu", config.bench_gpu))
config.substitutions.append(("%on_gpu", "env UMBRA_CUDA_DRIVER=" + config.cuda_stand_in + " UMBRA_CUBLASLT=" + config.cublas_stand_in +
                             " UMBRA_NVRTC=" + config.nvrtc_stand_in + " STAND_IN_DEFERS=1"))
config.substitutions.append(("%cuda_stand_in", config.cuda_stand_in))
config.substitutions.append(("%nvfatbin_stand_in", config.nvfatbin_stand_in))
if re.search(r"^nvrtc +missing", subprocess.run([config.umbra, "doctor"], capture_output=True, text=True).stdout, re.M) is None:
    config.available_features.add("nvrtc")
if os.path.exists(config.bench_gpu):
    config.available_features.add("bench_gpu")
nvcc = shutil.which("nvcc", path=os.environ["PATH"] + ":/usr/local/cuda/bin")
if nvcc:
    config.available_features.add("nvcc")
    config.substitutions.append(("%nvcc", nvcc))
config.substitutions.append(("%FileCheck", config.filecheck))
