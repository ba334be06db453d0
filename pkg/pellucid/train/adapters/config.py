"""Configurations of adapters: LoRA with DoRA, IA3, prompt tuning, as peft's ``adapter_config.json``."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from ...errors import ArgumentError, FormatError, RangeError
from ...weights.document import as_bytes, parse_object

# Of peft's keys, those that change nothing while they are unset, and those that say how a file was made.
_UNSET = (None, False, 0, 0.0, {}, [], "")
_PASSED = frozenset(
    {
        "auto_mapping", "peft_version", "revision", "qalora_group_size", "runtime_config", "megatron_core",
        "loftq_config",
    }
)  # fmt: skip


@dataclass
class PeftConfig:
    """What all adapters have.

    Args:
        task_type: such as "CAUSAL_LM"; kept for readers of the file.
        base_model_name_or_path: of the model that the adapter is for.
        inference_mode: made for use, not for training.
        modules_to_save: ends of paths of modules that are trained whole, beside the adapter, such as
            "lm_head".
    """

    peft_type: ClassVar[str] = ""
    task_type: str | None = None
    base_model_name_or_path: str | None = None
    inference_mode: bool = False
    modules_to_save: list[str] | None = None

    def to_dict(self) -> dict[str, Any]:
        """The keys of ``adapter_config.json``."""
        found = {f.name: getattr(self, f.name) for f in fields(self)}
        return {"peft_type": self.peft_type} | {
            k: sorted(v) if isinstance(v, set) else v for k, v in sorted(found.items())
        }

    def to_json(self) -> str:
        """The text of ``adapter_config.json``."""
        return json.dumps(self.to_dict(), indent=2)

    @staticmethod
    def from_json(text: str | bytes) -> PeftConfig:
        """The configuration in an ``adapter_config.json``.

        Raises:
            FormatError: it is none, of another kind of adapter, or has a setting that would compute
                something else.
        """
        keys = parse_object("adapter_config.json", as_bytes(text))
        kind = CONFIGS.get(keys.get("peft_type", ""))
        if kind is None:
            raise FormatError(
                f"adapter_config.json: peft_type {keys.get('peft_type')!r} is not known. There are "
                f"{', '.join(CONFIGS)}."
            )
        known = {f.name for f in fields(kind)}
        unknown = {
            k: v for k, v in keys.items() if k not in known | _PASSED | {"peft_type"} and v not in _UNSET
        }
        if unknown:
            raise FormatError(
                f"adapter_config.json: {', '.join(f'{k}={v!r}' for k, v in unknown.items())} of "
                f"{kind.__name__} is not computed here. Use an adapter without it."
            )
        given: dict[str, Any] = {k: v for k, v in keys.items() if k in known and v is not None}
        return kind(**given)


@dataclass
class _Targeted(PeftConfig):
    """An adapter of modules that paths name.

    Args:
        target_modules: ends of paths of linear layers, or one regular expression for whole paths;
            "all-linear" for all but the head; None for the usual ones of the architecture.
        exclude_modules: likewise, what is left out.
        fan_in_fan_out: accepted: layers say themselves which way their weight lies.
    """

    target_modules: str | list[str] | None = None
    exclude_modules: str | list[str] | None = None
    fan_in_fan_out: bool = False

    def targets(self, path: str) -> bool:
        """Whether a path is one of the modules."""
        if self.exclude_modules and _matches(self.exclude_modules, path):
            return False
        if self.modules_to_save and _matches(self.modules_to_save, path):
            return False
        return _matches(self.target_modules or [], path)


def _matches(patterns: str | list[str], path: str) -> bool:
    if isinstance(patterns, str):
        return re.fullmatch(patterns, path) is not None
    return any(path == p or path.endswith(f".{p}") for p in patterns)


@dataclass
class LoraConfig(_Targeted):
    """LoRA: ``W x + scaling * B A x`` with matrices of rank ``r``, of which A and B are trained.

    Args:
        r: the rank.
        lora_alpha: the scaling is ``lora_alpha / r``, with ``use_rslora`` ``lora_alpha / sqrt(r)``.
        lora_dropout: of what A is given.
        bias: which biases are trained: "none", "all", or "lora_only" those of the targets.
        use_rslora: see above.
        use_dora: DoRA: also trains the length of each row of ``W + scaling * B A``.
        init_lora_weights: True: A uniform as in `nn.Linear` and B zero; "gaussian": A normal; False: both
            uniform, so that the adapter changes something from the beginning.
        layers_to_transform: numbers of layers, the first in a path; None for all. ``layers_pattern`` is kept.
        rank_pattern, alpha_pattern: other ranks and alphas by ends or expressions of paths.

    Raises:
        RangeError: ``r`` is not positive, or ``bias`` or ``init_lora_weights`` is none of these.

    Source: Hu et al. 2021, "LoRA"; Liu et al. 2024, "DoRA"; Kalajdzievski 2023, "rsLoRA";
        https://huggingface.co/docs/peft/package_reference/lora
    """

    peft_type: ClassVar[str] = "LORA"
    r: int = 8
    lora_alpha: float = 8
    lora_dropout: float = 0.0
    bias: str = "none"
    use_rslora: bool = False
    use_dora: bool = False
    init_lora_weights: bool | str = True
    layers_to_transform: int | list[int] | None = None
    layers_pattern: str | list[str] | None = None
    rank_pattern: dict[str, int] = field(default_factory=dict)
    alpha_pattern: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.r, int) or self.r < 1:
            raise RangeError(f"LoraConfig: r must be a positive integer, not {self.r!r}.")
        if self.bias not in ("none", "all", "lora_only"):
            raise RangeError(f"LoraConfig: bias must be 'none', 'all' or 'lora_only', not {self.bias!r}.")
        if self.init_lora_weights not in (True, False, "gaussian"):
            raise RangeError(
                "LoraConfig: init_lora_weights must be True, False or 'gaussian', not "
                f"{self.init_lora_weights!r}."
            )

    def targets(self, path: str) -> bool:
        layers = self.layers_to_transform
        if layers is None or not super().targets(path):
            return super().targets(path)
        number = re.search(r"\.(\d+)\.", f".{path}.")
        return number is not None and int(number[1]) in ([layers] if isinstance(layers, int) else layers)

    def rank_of(self, path: str) -> int:
        """The rank of a module."""
        return _of_pattern(self.rank_pattern, path, self.r)

    def scaling_of(self, path: str) -> float:
        """The factor of a module's change."""
        rank = self.rank_of(path)
        return _of_pattern(self.alpha_pattern, path, self.lora_alpha) / (
            rank**0.5 if self.use_rslora else rank
        )


def _of_pattern(table: Mapping[str, Any], path: str, usual: Any) -> Any:
    return next((v for k, v in table.items() if re.fullmatch(rf"(.*\.)?({k})", path)), usual)


@dataclass
class IA3Config(_Targeted):
    """IA3: what some layers give, or what feed-forwards are given, times a vector that is trained.

    Args:
        feedforward_modules: those of the targets whose input is scaled; None for the usual ones.
        init_ia3_weights: begin with ones; False: with random factors.

    Source: Liu et al. 2022, "Few-Shot Parameter-Efficient Fine-Tuning is Better and Cheaper than In-Context
        Learning"; https://huggingface.co/docs/peft/package_reference/ia3
    """

    peft_type: ClassVar[str] = "IA3"
    feedforward_modules: str | list[str] | None = None
    init_ia3_weights: bool = True

    def is_feedforward(self, path: str) -> bool:
        """Whether the input of a target is scaled."""
        return bool(self.feedforward_modules) and _matches(self.feedforward_modules or [], path)


@dataclass
class PromptTuningConfig(PeftConfig):
    """Prompt tuning: rows before each text that are trained, in place of embeddings of ids.

    Args:
        num_virtual_tokens: how many rows.
        prompt_tuning_init: "RANDOM", or "TEXT" for the embeddings of a text.
        prompt_tuning_init_text: the text, repeated or cut to the number of rows.
        tokenizer_name_or_path: kept for readers of the file; `get_peft_model` is given a tokenizer.
        token_dim, num_transformer_submodules, num_attention_heads, num_layers: of the model; set when the
            adapter is made.

    Raises:
        RangeError: a number or name is out of range.
        ArgumentError: "TEXT" without a text.

    Source: Lester et al. 2021, "The Power of Scale for Parameter-Efficient Prompt Tuning";
        https://huggingface.co/docs/peft/package_reference/prompt_tuning
    """

    peft_type: ClassVar[str] = "PROMPT_TUNING"
    num_virtual_tokens: int = 8
    prompt_tuning_init: str = "RANDOM"
    prompt_tuning_init_text: str | None = None
    tokenizer_name_or_path: str | None = None
    tokenizer_kwargs: dict[str, Any] | None = None
    token_dim: int | None = None
    num_transformer_submodules: int | None = 1
    num_attention_heads: int | None = None
    num_layers: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.num_virtual_tokens, int) or self.num_virtual_tokens < 1:
            raise RangeError(
                f"PromptTuningConfig: num_virtual_tokens must be a positive integer, not "
                f"{self.num_virtual_tokens!r}."
            )
        if self.prompt_tuning_init not in ("RANDOM", "TEXT"):
            raise RangeError(
                "PromptTuningConfig: prompt_tuning_init must be 'RANDOM' or 'TEXT', not "
                f"{self.prompt_tuning_init!r}."
            )
        if self.prompt_tuning_init == "TEXT" and not self.prompt_tuning_init_text:
            raise ArgumentError("PromptTuningConfig: 'TEXT' needs prompt_tuning_init_text.")


CONFIGS: dict[str, type[PeftConfig]] = {c.peft_type: c for c in (LoraConfig, IA3Config, PromptTuningConfig)}

__all__ = ["CONFIGS", "IA3Config", "LoraConfig", "PeftConfig", "PromptTuningConfig"]
