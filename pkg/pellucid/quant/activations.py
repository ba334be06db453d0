"""Dynamic quantization of activations: the input of a layer, rounded to a narrow type as it comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from math import inf
from typing import Any

from ..autograd.grad_mode import is_grad_enabled
from ..errors import FormatError
from ..tensors.tensor import Tensor
from .float8 import LARGEST, round_to_fp8

_BITS = {"int8": 8, "int4": 4}
LAYER = "_layer"  # among the settings: its name
_LEAST = 2.0**-23  # the epsilon of float32


@dataclass(frozen=True)
class DynamicQuantization:
    """How the input of a layer is rounded before it meets quantized weights.

    ``x' = (clamp(round(x / scale + zero)) - zero) * scale`` in float32, where ``scale`` is the largest
    magnitude of a token, divided by ``steps``. What a kernel for integers multiplies has these values, so the
    product is the same up to the rounding of sums. The gradient is that of the identity.

    Args:
        dtype: ``"int8"``, ``"int4"``, ``"fp8_e4m3"`` or ``"fp8_e5m2"``.
        steps: what the largest magnitude becomes; of an asymmetric type, what the range becomes.
        symmetric: zero stays zero; else the range may lie anywhere, and ``zero`` is a whole number.
        columns: so many columns of a token have a scale of their own; all if None.
        per_tensor: all tokens have one scale.
        least: scales are no smaller.
        most: a magnitude beyond it counts as this one, and is cut off.
        powers_of_two: scales are the next powers of two.
        threshold: a column with a magnitude from here on is not rounded, in no token: LLM.int8().

    Source: Dettmers et al. 2022, "LLM.int8()"; Ma et al. 2024, "The Era of 1-bit LLMs"

    Example:
        >>> import pellucid as torch
        >>> from pellucid.quant.activations import DynamicQuantization
        >>> tokens = torch.tensor([[127.0, 0.4], [0.2, 1.27]], device="cpu")
        >>> DynamicQuantization("int8", 127.0)(tokens).tolist()
        [[127.0, 0.0], [0.20000000298023224, 1.2699999809265137]]
    """

    dtype: str
    steps: float
    symmetric: bool = True
    columns: int | None = None
    per_tensor: bool = False
    least: float = 0.0
    most: float = inf
    powers_of_two: bool = False
    threshold: float = inf

    def to_dict(self) -> dict[str, Any]:
        """What differs from the defaults, as ``config.json`` of `save_pretrained` has it."""
        default = DynamicQuantization(self.dtype, self.steps)
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        return {k: v for k, v in values.items() if k in ("dtype", "steps") or v != getattr(default, k)}

    def __call__(self, x: Tensor) -> Tensor:
        """The input, rounded; gradients pass as if it were not."""
        if not x.numel():
            return x
        made = self._rounded(x.detach())
        return made + (x - x.detach()) if is_grad_enabled() and x.requires_grad else made

    def __str__(self) -> str:
        each = "tensor" if self.per_tensor else f"{self.columns} columns" if self.columns else "token"
        return f"{self.dtype} per {each}"

    def _rounded(self, x: Tensor) -> Tensor:
        width = x.shape[-1] if self.columns is None else min(self.columns, x.shape[-1])
        if x.shape[-1] == width:
            return self._of_groups(x)
        whole = x.shape[-1] // width * width
        made = self._of_groups(x[..., :whole].unflatten(-1, (-1, width))).flatten(-2)
        if whole == x.shape[-1]:
            return made
        joined = x.clone()
        joined[..., :whole], joined[..., whole:] = made, self._of_groups(x[..., whole:])
        return joined

    def _of_groups(self, x: Tensor) -> Tensor:
        """Rounded, with a scale for each last axis."""
        if self.threshold == inf:
            return self._by_range(x, x)
        outliers = x.abs() >= self.threshold
        columns = outliers.reshape(-1, x.shape[-1]).any(0)
        return x.where(columns, self._by_range(x, x.masked_fill(outliers, 0.0)))

    def _by_range(self, x: Tensor, given: Tensor) -> Tensor:
        """Rounded with the scales that the range of other numbers makes."""
        over = {} if self.per_tensor else {"dim": -1, "keepdim": True}
        half = 2.0 ** (_BITS[self.dtype] - 1) if self.dtype in _BITS else 0.0
        if not self.symmetric:
            low, high = given.amin(**over).clamp(max=0.0), given.amax(**over).clamp(min=0.0)
            scale = self._scale(high - low)
            zero = (-half - low / scale).round().clamp(-half, half - 1)
            return ((x / scale + zero).round().clamp(-half, half - 1) - zero) * scale
        scale = self._scale(given.abs().amax(**over).clamp(max=self.most))
        if half:
            return (x / scale).round().clamp(-half, half - 1) * scale
        return round_to_fp8(x / scale, self.dtype) * scale

    def _scale(self, span: Tensor) -> Tensor:
        scale = span / self.steps
        # Of zeros alone any scale will do.
        scale = scale.clamp(min=self.least) if self.least else scale.masked_fill(scale == 0, 1.0)
        if not self.powers_of_two:
            return scale
        mantissa, exponent = scale.frexp()  # from 1/2 on
        return scale.new_ones(scale.shape).ldexp(exponent - (mantissa == 0.5).int())


def of_saved(settings: Mapping[str, Any]) -> DynamicQuantization | None:
    """What `save_pretrained` wrote of the layer whose name stands among the settings; None if nothing.

    Raises:
        FormatError: it is no such thing.
    """
    groups = settings.get("input_activations", [])
    if not isinstance(groups, list) or not all(isinstance(group, Mapping) for group in groups):
        raise FormatError("input_activations are no list of objects.")
    for group in groups:
        layers = group.get("layers")
        if not isinstance(layers, list):
            raise FormatError("input_activations without a list of layers.")
        if settings[LAYER] in layers:
            given = {key: value for key, value in group.items() if key != "layers"}
            for key, value in given.items():
                if key not in _FIELDS or not _FIELDS[key](value):
                    raise FormatError(f"input_activations: {key[:80]} {str(value)[:80]} is not read.")
            if not given.keys() >= {"dtype", "steps"}:
                raise FormatError("input_activations without dtype and steps.")
            return DynamicQuantization(**given)
    return None


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and 0 < value < inf


def _is_bool(value: Any) -> bool:
    return type(value) is bool


_FIELDS: dict[str, Callable[[Any], bool]] = {
    "dtype": lambda value: value in (*_BITS, *LARGEST),
    **dict.fromkeys(("steps", "least", "most", "threshold"), _is_positive),
    **dict.fromkeys(("symmetric", "per_tensor", "powers_of_two"), _is_bool),
    "columns": lambda value: type(value) is int and value > 0,
}


def of_compressed_tensors(settings: Mapping[str, Any]) -> DynamicQuantization | None:
    """What ``input_activations`` say; None where a scale is in the file, or there are none.

    Raises:
        FormatError: they are of another kind.

    Source: https://github.com/vllm-project/compressed-tensors, quantization/utils/helpers.py
    """
    given = settings.get("input_activations")
    if not isinstance(given, Mapping) or given.get("dynamic") is not True:
        return None
    bits: Any = given.get("num_bits")
    kind, symmetric = given.get("type") or "int", given.get("symmetric", True)
    strategy, columns = given.get("strategy"), given.get("group_size")
    strategy = strategy or ("tensor" if columns is None else "group")
    is_known = (kind, bits) in (("int", 4), ("int", 8), ("float", 8)) and (kind == "int" or symmetric is True)
    is_group = strategy == "group" and type(columns) is int and columns > 0
    if not is_known or not (is_group or strategy in ("token", "tensor")) or type(symmetric) is not bool:
        raise FormatError(
            f"input_activations of {bits!r} bits, type {kind!r}, strategy {strategy!r}, group_size "
            f"{columns!r} and symmetric {symmetric!r} are not read. Integers of 4 or 8 bits and symmetric "
            "floats of 8 bits are, for each token, group or tensor."
        )
    columns = columns if is_group else None
    if kind == "float":
        return DynamicQuantization("fp8_e4m3", LARGEST["fp8_e4m3"], True, columns, strategy == "tensor")
    steps = float(2**bits - 1)
    steps = steps / 2 if symmetric else steps
    return DynamicQuantization(f"int{bits}", steps, symmetric, columns, strategy == "tensor")


def of_torchao(settings: Mapping[str, Any]) -> DynamicQuantization | None:
    """What the configuration's class says; None where it leaves activations as they are.

    Source: https://github.com/pytorch/ao, torchao/quantization/quant_api.py
    """
    config = settings.get("quant_type")
    config = config.get("default") if isinstance(config, Mapping) else None
    name, data = (config.get("_type"), config.get("_data")) if isinstance(config, Mapping) else (None, None)
    data = data if isinstance(data, Mapping) else {}
    if name in ("Int8DynamicActivationInt4WeightConfig", "Int8DynamicActivationIntxWeightConfig"):
        return DynamicQuantization("int8", 255.0, symmetric=False, least=_LEAST)
    granularity = data.get("granularity")
    granularity = granularity[0] if isinstance(granularity, list) and granularity else granularity
    is_row = isinstance(granularity, Mapping) and granularity.get("_type") == "PerRow"
    if name == "Float8DynamicActivationFloat8WeightConfig":
        most = data.get("activation_value_ub")
        most = float(most) if isinstance(most, int | float) else inf
        return DynamicQuantization("fp8_e4m3", LARGEST["fp8_e4m3"], per_tensor=not is_row, most=most)
    if name == "Int8DynamicActivationInt8WeightConfig":
        symmetric = _named(data.get("act_mapping_type")) != "ASYMMETRIC"
        by_token = is_row or granularity is None
        return DynamicQuantization(
            "int8", 127.5 if symmetric else 255.0, symmetric, per_tensor=not by_token, least=_LEAST
        )
    return None


def _named(value: Any) -> Any:
    """A member of an enumeration, as torchao writes it."""
    return value.get("_data") if isinstance(value, Mapping) else value
