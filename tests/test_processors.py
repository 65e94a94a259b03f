"""Results do not depend on the processor: the same bits on every x86-64 since x86-64-v2."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import ArrayLike

import rankinite as rk

PROJECT = Path(__file__).parents[1]
PACKAGE = PROJECT / "src" / "rankinite"

# What numba, numpy, the C library and OpenBLAS are told about the processor: that it can do no more
# than x86-64-v2.
PLAIN = {
    "NUMBA_CPU_NAME": "x86-64-v2",
    "NUMBA_CPU_FEATURES": "",
    "NPY_DISABLE_CPU_FEATURES": " ".join(
        np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    ),
    "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX_Usable,-AVX2_Usable,-FMA_Usable,-FMA4_Usable,"
    "-AVX512F_Usable,-AVX,-AVX2,-FMA,-FMA4,-AVX512F",
    "OPENBLAS_CORETYPE": "Nehalem",
}

# Of numpy, the C library and BLAS; their last bits depend on the processor. SciPy's functions only
# serve statistics.
FUNCTIONS = {
    "cos", "cosh", "dot", "einsum", "erf", "exp", "exp2", "expm1", "gamma", "inner", "lgamma",
    "linalg", "log", "log10", "log1p", "log2", "logaddexp", "matmul", "pow", "power", "sin", "sinh",
    "tan", "tanh", "tensordot", "vdot",
}  # fmt: skip
# Where results are tables and drawings.
STATISTICS = {"cli", "evaluation", "papers", "report", "stats", "sweeps"}


def uses_of_other_functions(tree: ast.AST) -> list[str]:
    """Where a module uses functions of numpy or math, or products of matrices."""
    uses = []
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            uses.append(f"line {node.lineno}: @")
        if isinstance(node, ast.Attribute) and node.attr in FUNCTIONS:
            module = ast.unparse(node.value)
            uses += [f"line {node.lineno}: {module}.{node.attr}"] * (module in ("np", "math"))
    return uses


def test_models_are_computed_without_functions_of_the_processor():
    files = [
        path
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in STATISTICS
    ]
    assert len(files) > 100
    used = {
        str(path.relative_to(PACKAGE)): uses
        for path in files
        if (uses := uses_of_other_functions(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert used == {}


@pytest.mark.parametrize("use", ["np.exp(x)", "y = math.log2(x)", "a @ b", "np.linalg.norm(x)"])
def test_uses_are_seen(use):
    assert len(uses_of_other_functions(ast.parse(use))) == 1


def digest(*arrays: ArrayLike) -> str:
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()


def gradients_of(data: rk.RankingData) -> str:
    scores = np.random.default_rng(1).normal(size=data.n_docs)
    arrays = [
        rk.lambda_gradients(objective, scores, data.y, data.offsets)
        for objective in ("NDCG@5", "ERR", "RankNet")
    ]
    return digest(*arrays)


def model_of(ranker: rk.LambdaMART | rk.LambdaRank, data: rk.RankingData) -> str:
    ranker.fit(data, valid=data).save("model.rk")
    return digest(np.fromfile("model.rk", np.uint8), ranker.predict(data))


COMPUTED: dict[str, Callable[[rk.RankingData], str]] = {
    "gradients": gradients_of,
    "net": lambda data: model_of(rk.LambdaRank(hidden=(5,), n_epochs=2, random_state=1), data),
    "trees": lambda data: model_of(rk.LambdaMART(n_trees=5, random_state=1), data),
}


def computed(what: str) -> list[str]:
    """Return digests of simulated data and of what is computed from them on this processor."""
    data = rk.polynomials(20, seed=3, n_docs=12)
    return [digest(data.X), COMPUTED[what](data)]


def computed_on_plain_processor(what: str, folder: Path) -> list[str]:
    environment = {**os.environ, **PLAIN, "PYTHONPATH": str(PROJECT)}
    environment["RANKINITE_CACHE_DIR"] = str(folder / "cache")
    program = f"import json, tests.test_processors as t; print(json.dumps(t.computed({what!r})))"
    process = subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert process.returncode == 0, process.stderr
    digests: list[str] = json.loads(process.stdout)
    return digests


# Everything is compiled for the other processor, which takes long for whole rankers.
@pytest.mark.parametrize(
    "what",
    [
        "gradients",
        pytest.param("net", marks=pytest.mark.long),
        pytest.param("trees", marks=pytest.mark.long),
    ],
)
def test_the_same_bits_on_a_plain_processor(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert computed_on_plain_processor(what, tmp_path) == computed(what)
