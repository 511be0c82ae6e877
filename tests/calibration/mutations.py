"""Constants of kernel files spoilt one at a time: each is refused by its name, or changes times.

A kernel is written to a file by itself, one constant of it deleted, renamed, or given another
value. The file is then refused with a problem that names the constant; or it loads, and the
closed form gives other, finite, positive times at some shape. It may give the same where the
constant, as large as it is in this kernel, is below what a float adds up, or where the table or
the closed form says the same of what is left out.

`python -m tests.calibration.mutations` spoils every constant of every file that ships.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from inspect import signature
from itertools import product
from pathlib import Path

import numpy as np

from planner.equations.kernels import FAMILIES
from planner.equations.kernels.constants import RANGES
from planner.errors import SpecError
from planner.estimates.kernel_files import load_kernels
from planner.specs.files.places import Kind, files

DELETED, RENAMED = "deleted", "renamed"
VALUES = ("0", "-1", "nan", "inf", "-inf", "1e30", "1e-30", '"0.5"', "{ value = 0.5 }", "true")
HOWS = (DELETED, RENAMED, *VALUES)

RATES = {"peak_flop_per_s": 1e15, "hbm_bytes_per_s": 3e12}
SIZES: Mapping[str, tuple[float, ...]] = {
    "m": (1.0, 64.0, 3000.0),
    "tokens": (1.0, 64.0, 3000.0),
    "n": (256.0, 4096.0),
    "k": (256.0, 2048.0),
    "batch": (1.0, 16.0, 300.0),
    "context": (64.0, 4096.0),
    "n_heads": (1.0, 32.0),
    "n_nodes": (1.0, 2.0),
    "n_active": (1.0, 8.0),
    "n_groups_hit": (4.0,),
    "n_kv_heads": (1.0,),
    "d_head": (128.0,),
    "cache_bytes": (2.0,),
    "weight_bytes": (2.0,),
    "input_bytes": (2.0,),
    "n_bytes": (1e3, 1e6),
    "vocab": (1e5,),
    "d_model": (4096.0,),
    "bytes_per_number": (1.0,),
    "n_experts": (64.0,),
    "n_experts_local": (16.0,),
    "d_expert": (1024.0,),
    "product_flop_per_s": (2e15,),
    "n_index_heads": (64.0,),
    "d_index": (128.0,),
    "n_selected": (2048.0,),
    "d_q_latent": (1536.0,),
    "index_flop_per_s": (2e15,),
    "d_key": (128.0,),
    "d_value": (128.0,),
    "d_conv": (8192.0,),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One constant of one kernel of a file that ships, and how it is spoilt."""

    file: str
    family: str
    format: str
    constants: Mapping[str, float]
    n_sms: int
    constant: str
    how: str

    @property
    def name(self) -> str:
        return f"{self.file} {self.family} {self.format}: {self.constant} {self.how}"


def cases() -> Iterator[Case]:
    """Every constant of every file that ships, spoilt in every way."""
    for path in files(Kind.KERNELS):
        table = load_kernels(path.stem)
        for (family, form), kernel in table.kernels.items():
            for constant, how in product(kernel.constants, HOWS):
                if how == "0" and not kernel.constants[constant]:
                    continue  # it would be the sound file
                yield Case(
                    file=path.stem,
                    family=family,
                    format=form,
                    constants=kernel.constants,
                    n_sms=table.n_sms,
                    constant=constant,
                    how=how,
                )


def written(case: Case) -> str:
    """The kernel by itself, as a file."""
    sms = f'n_sms = {{ value = {case.n_sms}, source = "counted" }}\n' if case.n_sms else ""
    constants = {name: repr(value) for name, value in case.constants.items()}
    if case.how == DELETED:
        del constants[case.constant]
    elif case.how == RENAMED:
        constants[f"{case.constant}x"] = constants.pop(case.constant)
    else:
        constants[case.constant] = case.how
    listed = "\n".join(f"{name} = {value}" for name, value in constants.items())
    return (
        f'[table]\nname = "spoilt"\ndevice = "h20"\nengine = "own"\nversion = "1"\n{sms}'
        f"[[kernel]]\nfamily = {json.dumps(case.family)}\nformat = {json.dumps(case.format)}\n"
        f"[kernel.constants]\n{listed}\n"
        '[kernel.fit]\nsource = "measured"\nn_rows = 9\nmedian_error = 0.1\np90_error = 0.2\n'
    )


def seconds(case: Case, constants: Mapping[str, float]) -> np.ndarray:
    """Times at all shapes, of constants that the table completes."""
    family = FAMILIES[case.family]
    grids = np.meshgrid(*(SIZES[name] for name in family.dimensions), indexing="ij")
    columns = {name: grid.ravel() for name, grid in zip(family.dimensions, grids, strict=True)}
    known = dict(constants)
    if "prologue_k" in known and case.n_sms:
        known.setdefault("n_sms", float(case.n_sms))
    return np.asarray(family.seconds(columns, RATES, known))


def fault(case: Case, folder: Path) -> str:
    """What is wrong with how a case is met; empty if it is refused by name, or counts."""
    path = folder / "spoilt.toml"
    path.write_text(written(case), encoding="utf-8")
    try:
        table = load_kernels(str(path))
    except SpecError as error:
        named = [p for p in error.problems if f".constants.{case.constant}" in p.key and p.fact]
        return "" if named else f"refused without its name: {error}"
    times = seconds(case, table.kernels[case.family, case.format].constants)
    if not (np.isfinite(times).all() and (times > 0).all()):
        return "times are no positive numbers"
    if counts(case, table.kernels[case.family, case.format].constants):
        return ""
    if case.how == DELETED and is_restored(case):
        return ""
    loaded = table.kernels[case.family, case.format].constants.get(case.constant)
    if loaded == 1e-30 and not case.constants[case.constant]:
        return ""  # nothing, written otherwise
    return "" if not matters(case) else "loads, and gives the times of the sound file"


def is_restored(case: Case) -> bool:
    """Whether a constant that is left out stays what it was: the table or the form says it."""
    usual = signature(FAMILIES[case.family].function).parameters.get(case.constant)
    says = usual is not None and usual.default == case.constants[case.constant]
    return says or (case.constant == "n_sms" and case.n_sms > 0)


def counts(case: Case, constants: Mapping[str, float]) -> bool:
    """Whether other constants give other times than the sound ones."""
    return not np.array_equal(seconds(case, constants), seconds(case, case.constants))


def matters(case: Case) -> bool:
    """Whether a constant as large as it is shows in any time."""
    value = case.constants[case.constant] * 1.5 or RANGES[case.constant].high / 10
    return counts(case, {**case.constants, case.constant: value})


def main(n_cases: int | None, seed: int) -> int:
    """Spoil constants, all or some drawn; the number of cases that are not met as they should."""
    chosen = list(cases())
    if n_cases is not None:
        chosen = random.Random(seed).sample(chosen, n_cases)
    n_wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in chosen:
            found = fault(case, Path(folder))
            if found:
                n_wrong += 1
                print(f"{case.name}: {found}")
    print(f"{len(chosen)} constants spoilt, {n_wrong} not met")
    return n_wrong


if __name__ == "__main__":
    sys.exit(bool(main(int(sys.argv[1]) if len(sys.argv) > 1 else None, seed=1)))
