"""Files of adapters as peft has them: ``adapter_config.json`` and ``adapter_model.safetensors``."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from ... import weights
from ...device.steps import later, now
from ...errors import WeightError
from ...nn.modules.module import Module
from ...tensors.tensor import Tensor
from ..checkpoints.complete import on_cpu, tensors_of
from ..checkpoints.folders import folder_of
from .config import PeftConfig, PromptTuningConfig

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_PROMPT = "prompt_embeddings"
# Attributes of layers that hold what is trained, by the adapter's name.
_HOLDERS = frozenset(
    {
        "lora_A", "lora_B", "lora_embedding_A", "lora_embedding_B", "lora_magnitude_vector", "ia3_l",
        "modules_to_save",
    }
)  # fmt: skip


def is_trained_bias(path: str, which: str) -> bool:
    """Whether a bias is trained with an adapter.

    Args:
        path: of the bias.
        which: ``LoraConfig.bias``.
    """
    return which == "all" or (which == "lora_only" and path.endswith("base_layer.bias"))


def _in_file(path: str, name: str) -> str:
    """A parameter's name in a file of peft."""
    path = path.replace(f".modules_to_save.{name}.", ".").replace(f".{name}", "")
    return path.removesuffix(".weight") if ".lora_magnitude_vector" in path else path


class AdapterFiles(Module):
    """What a `PeftModel` reads and writes."""

    if TYPE_CHECKING:
        active_adapter: str
        peft_config: dict[str, PeftConfig]

        def _prompt(self) -> Any: ...

    def adapter_state(self, adapter_name: str | None = None) -> dict[str, Tensor]:
        """The adapter's tensors by peft's names, without the adapter's name in them."""
        name = adapter_name or self.active_adapter
        config, prompt = self.peft_config[name], self._prompt()
        if isinstance(config, PromptTuningConfig):
            assert prompt is not None
            return {_PROMPT: prompt.prompts[name]}
        found = {}
        biases = getattr(config, "bias", "none")
        for path, p in self.named_parameters():
            parts = path.split(".")
            if name in parts and any(part in _HOLDERS for part in parts):
                found[_in_file(path, name)] = p
            elif parts[-1] == "bias" and is_trained_bias(path, biases):
                found[path] = p
        return found

    def adapter_files(self, adapter_name: str | None = None) -> Generator[tuple, Any, dict[str, bytes]]:
        """The files of an adapter: ``adapter_config.json`` and ``adapter_model.safetensors``."""
        name = adapter_name or self.active_adapter
        state = yield from on_cpu(self.adapter_state(name))
        return {
            WEIGHTS: weights.save(state, {"format": "pt"}),
            CONFIG: self.peft_config[name].to_json().encode(),
        }

    def load_adapter_files(self, files: Mapping[str, bytes], adapter_name: str | None = None) -> None:
        """Give an adapter the values of its files.

        Raises:
            WeightError: they are those of another adapter.
        """
        if WEIGHTS not in files:
            raise WeightError(
                f"load_adapter: there is no {WEIGHTS}; there are {', '.join(files) or 'no files'}."
            )
        own, given = self.adapter_state(adapter_name), tensors_of(files[WEIGHTS])
        # peft also writes the frozen embeddings that an adapter changes.
        frozen = {k: p for k, p in self.named_parameters() if k in given and not p.dtype.is_quantized}
        own = {**own, **frozen}
        shapes = {k: tuple(v.shape) for k, v in own.items()}
        wrong = {k: tuple(v.shape) for k, v in given.items() if shapes.get(k) != tuple(v.shape)}
        if wrong or len(given) != len(own):
            missing = sorted(set(own) - set(given))
            others = [f"{k} {v}" for k, v in wrong.items()]
            raise WeightError(
                f"load_adapter: the file is of another model or adapter. {len(missing)} tensors are missing, "
                f"such as {', '.join(missing[:2]) or '-'}; {len(others)} are not here or have other shapes, "
                f"such as {', '.join(others[:2]) or '-'}."
            )
        for name, value in given.items():
            own[name].detach().copy_(value.to(own[name].device))

    def save_pretrained(self, save_directory: str | os.PathLike, adapter_name: str | None = None) -> None:
        """Write an adapter as peft does.

        Args:
            save_directory: a folder, or "opfs:NAME" in a page.
            adapter_name: which; the one that counts if None.
        """
        now(self._save(save_directory, adapter_name))

    async def save_pretrained_async(
        self, save_directory: str | os.PathLike, adapter_name: str | None = None
    ) -> None:
        """The awaitable twin of `save_pretrained`."""
        await later(self._save(save_directory, adapter_name))

    def _save(self, place: Any, name: str | None) -> Generator[tuple, Any, None]:
        folder = folder_of(place)
        for file, data in (yield from self.adapter_files(name)).items():
            yield (folder, "write", (file, data), {})


__all__ = ["CONFIG", "WEIGHTS", "AdapterFiles", "is_trained_bias"]
