"""What PyTorch runs for each family of kernels, on operands of random numbers.

Nothing is written by hand: products are `linear` and `_scaled_mm`, attention is
`scaled_dot_product_attention` (sdpa), experts are sorted and multiplied by groups, in one call
where PyTorch has one, else expert by expert.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

from planner.equations.kernels import FAMILIES
from planner_workshop.measuring.kernel_cases import ELEMENTWISE, KernelCase

Torch: TypeAlias = Any
Tensor: TypeAlias = Any
"""PyTorch itself and what it calls a tensor; nothing here can import them to say so."""

Call = Callable[[], object]
Maker = Callable[[KernelCase, Mapping[str, int]], Call]

_NUMBERS = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
_SEED = 20


class Programs:
    """Kernels of PyTorch on one device.

    Args:
        torch: the module.
        backend: PyTorch's name of the device.
    """

    def __init__(self, torch: Torch, backend: str) -> None:
        self._torch, self._device = torch, backend
        self._functions = torch.nn.functional
        self._draw = torch.Generator(device="cpu")
        self._draw.manual_seed(_SEED)

    def bytes_of(self, kernel: KernelCase) -> float:
        """Memory that one copy of the operands takes [bytes]."""
        sizes = kernel.dimensions
        if kernel.family == "gemm":
            each = 1.0 if kernel.format == "fp8" else self._dtype(kernel).itemsize
            return each * (sizes["n"] + sizes["m"]) * sizes["k"] + 2.0 * sizes["m"] * sizes["n"]
        if kernel.family == "experts":
            whole = sizes["n_experts_local"] * (sizes.get("n_up", 2.0) + 1.0)
            rows = sizes["tokens"] * sizes["n_active"]
            return (
                2.0 * whole * sizes["d_model"] * sizes["d_expert"] + 8.0 * rows * sizes["d_model"]
            )
        return float(FAMILIES[kernel.family].work(**sizes)[1])

    def calls(self, kernel: KernelCase, n_copies: int) -> tuple[str, list[Call]]:
        """The program's name, and a call for each copy of the operands.

        Raises:
            UntimedError: PyTorch has none.
        """
        programs: dict[str, tuple[str, Maker]] = {
            "gemm": ("linear", self._gemm),
            "gemm fp8": ("_scaled_mm, one scale a matrix", self._scaled_gemm),
            "decode_attention": ("sdpa, a group's heads as rows", self._decode),
            "prefill_attention": ("sdpa, causal", self._prefill),
            "experts": (self._grouped()[1], self._experts),
            "sampling": ("softmax, exponential, argmax", self._sampling),
            ELEMENTWISE: ("copy_", self._copy),
        }
        of_format = programs.get(f"{kernel.family} {kernel.format}")
        known = of_format or programs.get(kernel.family)
        if known is None:
            raise UntimedError("PyTorch has no program for it")
        name, make = known
        sizes = {
            key: int(value)
            for key, value in kernel.dimensions.items()
            if key == "n_bytes" or not key.endswith("_bytes")
        }
        return name, [make(kernel, sizes) for _ in range(n_copies)]

    def _dtype(self, kernel: KernelCase) -> Tensor:
        name = _NUMBERS.get(kernel.format)
        if name is None:
            raise UntimedError(f"PyTorch has no program for it in {kernel.format}")
        return getattr(self._torch, name)

    def _random(self, *shape: int, dtype: object) -> Tensor:
        values = self._torch.empty(shape, dtype=dtype, device=self._device)
        return values.uniform_(-0.1, 0.1)

    def _gemm(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        dtype, linear = self._dtype(kernel), self._functions.linear
        inputs = self._random(sizes["m"], sizes["k"], dtype=dtype)
        weights = self._random(sizes["n"], sizes["k"], dtype=dtype)
        return lambda: linear(inputs, weights)

    def _scaled_gemm(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        torch = self._torch
        if self._device == "cpu":  # runs there, number by number
            raise UntimedError("a processor has no products of fp8")
        scale = torch.ones((), dtype=torch.float32, device=self._device)
        inputs, weights = (
            self._random(rows, sizes["k"], dtype=torch.bfloat16).to(torch.float8_e4m3fn)
            for rows in (sizes["m"], sizes["n"])
        )
        return lambda: torch._scaled_mm(
            inputs, weights.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
        )

    def _decode(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        """Query heads that share keys and values are rows of one product with them."""
        dtype, attend = self._dtype(kernel), self._functions.scaled_dot_product_attention
        batch, heads, shared = sizes["batch"], sizes["n_heads"], sizes["n_kv_heads"]
        each = sizes["d_head"]
        queries = self._random(batch, shared, -(-heads // shared), each, dtype=dtype)
        keys, values = (
            self._random(batch, shared, sizes["context"], each, dtype=dtype) for _ in range(2)
        )
        return lambda: attend(queries, keys, values)

    def _prefill(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        dtype, attend = self._dtype(kernel), self._functions.scaled_dot_product_attention
        from torch.nn.attention.bias import causal_lower_right

        batch, tokens, each = sizes["batch"], sizes["tokens"], sizes["d_head"]
        seen = tokens + sizes.get("past_tokens", 0)
        queries = self._random(batch, sizes["n_heads"], tokens, each, dtype=dtype)
        keys, values = (
            self._random(batch, sizes["n_kv_heads"], seen, each, dtype=dtype) for _ in range(2)
        )
        groups = sizes["n_heads"] // sizes["n_kv_heads"]
        if seen == tokens:
            return lambda: attend(queries, keys, values, is_causal=True, enable_gqa=groups > 1)
        mask = causal_lower_right(tokens, seen)
        keys, values = (one.repeat_interleave(groups, dim=1) for one in (keys, values))
        return lambda: attend(queries, keys, values, attn_mask=mask)

    def _experts(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        """Sort by expert, two products by groups, activation between, weighted sum.

        Experts are drawn evenly; those that other devices hold are none of its rows.
        """
        if kernel.format != "bf16":
            raise UntimedError(f"PyTorch has no products of experts in {kernel.format}")
        if kernel.dimensions["n_experts"] != kernel.dimensions["n_experts_local"]:
            raise UntimedError("experts of other devices are not drawn")
        torch = self._torch
        product, _ = self._grouped()
        n_up, hidden, inner = sizes.get("n_up", 2), sizes["d_model"], sizes["d_expert"]
        n_experts, n_active = sizes["n_experts"], sizes["n_active"]
        inputs = self._random(sizes["tokens"], hidden, dtype=torch.bfloat16)
        up = self._random(n_experts, hidden, n_up * inner, dtype=torch.bfloat16)
        down = self._random(n_experts, inner, hidden, dtype=torch.bfloat16)
        drawn = torch.rand(sizes["tokens"], n_experts, generator=self._draw)
        chosen = drawn.topk(n_active, dim=1).indices.flatten().to(self._device)
        share = torch.full((len(chosen), 1), 1.0 / n_active, device=self._device)
        share = share.to(torch.bfloat16)
        ends = torch.arange(n_experts, device=self._device)

        def run() -> object:
            ordered, order = torch.sort(chosen)
            until = torch.searchsorted(ordered, ends, right=True).to(torch.int32)
            rows = order // n_active
            inside = product(inputs[rows], up, until)
            if n_up == 2:
                gate, value = inside.chunk(2, dim=1)
                inside = self._functions.silu(gate) * value
            else:
                inside = self._functions.silu(inside)
            outputs = product(inside, down, until) * share
            return torch.zeros_like(inputs).index_add_(0, rows, outputs)

        return run

    def _grouped(self) -> tuple[Callable[[Tensor, Tensor, Tensor], Tensor], str]:
        """Products of each expert's rows with its matrix."""
        torch = self._torch
        for module, name in ((self._functions, "grouped_mm"), (torch, "_grouped_mm")):
            grouped = getattr(module, name, None)
            if grouped is not None:
                return partial(_by_offsets, grouped), name

        def one_by_one(rows: Tensor, weights: Tensor, until: Tensor) -> Tensor:
            parts, first = [], 0
            for expert, last in enumerate(until.tolist()):
                if last > first:
                    parts.append(rows[first:last] @ weights[expert])
                first = last
            return torch.cat(parts)

        return one_by_one, "matmul, expert by expert"

    def _sampling(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        """As engines draw: one exponential a score, and the largest of the quotients."""
        torch = self._torch
        scores = self._random(sizes["batch"], sizes["vocab"], dtype=torch.bfloat16)

        def run() -> object:
            odds = torch.softmax(scores.float() / 0.7, dim=1)
            return (odds / torch.empty_like(odds).exponential_()).argmax(dim=1)

        return run

    def _copy(self, kernel: KernelCase, sizes: Mapping[str, int]) -> Call:
        # half of the bytes are read, half are written
        source = self._random(max(1, sizes["n_bytes"] // 4), dtype=self._torch.bfloat16)
        target = self._torch.empty_like(source)
        return lambda: target.copy_(source)


def _by_offsets(
    grouped: Callable[..., Tensor], rows: Tensor, weights: Tensor, until: Tensor
) -> Tensor:
    return grouped(rows, weights, offs=until)


class UntimedError(Exception):
    """A kernel that a bench cannot time; the text says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A kernel with its operands in memory, ready to run.

    Args:
        program: what runs: the function, and the library's choice where it is known.
        run_s: time of so many runs, one after the other, without their launches by the host [s];
            raises `UntimedError` where it cannot be run.
    """

    program: str
    run_s: Callable[[int], float]


class Bench(Protocol):
    """A machine and a library of kernels on it.

    Args:
        machine: as the library calls it: `NVIDIA H200`.
        software: the library, with its version.
        memory_bytes: of the device, as the library counts it [bytes].
        n_multiprocessors: of the device; 0 where it has none.
    """

    @property
    def machine(self) -> str: ...

    @property
    def software(self) -> str: ...

    @property
    def memory_bytes(self) -> float: ...

    @property
    def n_multiprocessors(self) -> int: ...

    def now_s(self) -> float:
        """Seconds that have passed since some moment, as budgets count them [s]."""

    def multiplies(self, number_format: str) -> bool:
        """Whether it has a product in the format."""

    def prepare(self, kernel: KernelCase) -> Prepared:
        """Put the operands of a kernel into memory.

        Raises:
            UntimedError: there is no program for it, or no room.
        """
