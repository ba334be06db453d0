"""PeftModel: a model with adapters, made, loaded, switched, merged and saved by peft's names."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

from ...device.steps import later, now
from ...errors import ArgumentError, RangeError
from ...models.language_model import CausalLM
from ...nn.modules.embedding import Embedding
from ...nn.modules.linear import Linear
from ...nn.modules.module import Module
from ...ops.shape.joining import cat
from ...tensors.tensor import Tensor
from ..checkpoints.folders import folder_of
from .config import IA3Config, LoraConfig, PeftConfig, PromptTuningConfig
from .files import CONFIG, WEIGHTS, AdapterFiles, is_trained_bias
from .layers import AdapterLayer, IA3Layer, LoraLayer, is_transposed
from .prompt import PromptEmbedding
from .targets import all_linear, usual_feedforwards, usual_targets
from .whole import Whole


class Tuner(Module):
    """The model within a `PeftModel`; paths are peft's: ``base_model.model`` and the model's own.

    Args:
        model: the model.
    """

    def __init__(self, model: Module):
        super().__init__()
        self.model = model

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.model(*args, **kwargs)


class PeftModel(AdapterFiles):
    """A model whose parameters are frozen, with adapters by name of which one counts.

    Everything else of the model is there as before. Its layers are replaced in place, so a lens, a
    generation and a captured call see the adapter.

    Args:
        model: the model.
        peft_config: of the first adapter.
        adapter_name: its name.
        tokenizer: for prompt tuning that begins with a text.

    Raises:
        ArgumentError: the adapter finds none of its modules.

    Source: https://huggingface.co/docs/peft/package_reference/peft_model
    """

    def __init__(
        self, model: Module, peft_config: PeftConfig, adapter_name: str = "default", tokenizer: Any = None
    ):
        super().__init__()
        self.base_model = Tuner(model)
        self.peft_config: dict[str, PeftConfig] = {}
        self.active_adapter = adapter_name
        for p in model.parameters():
            p.requires_grad_(False)
        self.add_adapter(adapter_name, peft_config, tokenizer)
        self.set_adapter(adapter_name)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or "base_model" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(self.get_base_model(), name)

    def get_base_model(self) -> Any:
        """The model within; its layers have the adapters."""
        return self.base_model.model

    @property
    def device(self) -> Any:
        """Where the model is."""
        return next(self.get_base_model().parameters()).device

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        prompt = self._prompt()
        if prompt is None or prompt.active is None:
            return self.base_model(*args, **kwargs)
        names = ("input_ids", "attention_mask")
        kwargs |= dict(zip(names, args, strict=False))
        kwargs["input_ids"] = prompt.before(kwargs["input_ids"])
        for name, value in (("attention_mask", 1), ("labels", -100)):
            if kwargs.get(name) is not None:
                kwargs[name] = prompt.filled(kwargs[name], value)
        return self.base_model(**kwargs)

    def generate(self, input_ids: Tensor, **settings: Any) -> Tensor:
        """Continue sequences with the adapter; see `pellucid.models.generate.generate`."""
        prompt = self._prompt()
        if prompt is None or prompt.active is None:
            return self.get_base_model().generate(input_ids, **settings)
        given = prompt.before(input_ids)
        if settings.get("attention_mask") is not None:
            settings["attention_mask"] = prompt.filled(settings["attention_mask"], 1)
        out = self.get_base_model().generate(given, **settings)
        return cat([input_ids, out[:, given.shape[1] :]], 1)

    # Adapters

    def _layers(self) -> Iterator[AdapterLayer]:
        return (m for m in self.modules() if isinstance(m, AdapterLayer))

    def _wholes(self) -> Iterator[Whole]:
        return (m for m in self.modules() if isinstance(m, Whole))

    def _prompt(self) -> PromptEmbedding | None:
        return next((m for m in self.modules() if isinstance(m, PromptEmbedding)), None)

    def add_adapter(self, adapter_name: str, peft_config: PeftConfig, tokenizer: Any = None) -> None:
        """Make another adapter, which counts once `set_adapter` says so.

        Args:
            adapter_name: its name.
            peft_config: what it is.
            tokenizer: for prompt tuning that begins with a text.

        Raises:
            RangeError: there is one of that name.
            ArgumentError: it finds none of its modules.
        """
        if adapter_name in self.peft_config:
            raise RangeError(f"add_adapter: there is an adapter {adapter_name!r}. Give another name.")
        if not adapter_name or "." in adapter_name:
            raise RangeError(f"add_adapter: {adapter_name!r} is no name: it must have no dot.")
        model = self.get_base_model()
        if isinstance(peft_config, PromptTuningConfig):
            self._add_prompt(adapter_name, peft_config, tokenizer)
        else:
            self._add_layers(adapter_name, peft_config)
        for path, module in list(model.named_modules()):
            if peft_config.modules_to_save and any(
                path == m or path.endswith(f".{m}") for m in peft_config.modules_to_save
            ):
                if not isinstance(module, Whole):
                    module = Whole(module)
                    model.set_submodule(path, module)
                module.add(adapter_name)
        self.peft_config[adapter_name] = peft_config

    def _add_prompt(self, name: str, config: PromptTuningConfig, tokenizer: Any) -> None:
        model = self.get_base_model()
        if not isinstance(model, CausalLM):
            raise ArgumentError(
                f"PromptTuningConfig: is for causal language models, not {type(model).__name__}. Use LoRA."
            )
        if config.prompt_tuning_init == "TEXT" and tokenizer is None:
            raise ArgumentError("PromptTuningConfig: 'TEXT' needs the tokenizer: get_peft_model(tokenizer=).")
        c = model.config
        config.token_dim = c.embedding_columns
        config.num_layers, config.num_attention_heads = c.num_hidden_layers, c.num_attention_heads
        decoder, attribute = model.decoder, c.module_names.embedding
        if not isinstance(getattr(decoder, attribute), PromptEmbedding):
            setattr(decoder, attribute, PromptEmbedding(getattr(decoder, attribute), c.vocab_size))
        getattr(decoder, attribute).add(name, config, tokenizer)

    def _add_layers(self, name: str, config: Any) -> None:
        model = self.get_base_model()
        if config.target_modules is None:
            config.target_modules = usual_targets(model, config)
        if config.target_modules == "all-linear":
            config.target_modules = all_linear(model)
        if isinstance(config, IA3Config) and config.feedforward_modules is None:
            config.feedforward_modules = [t for t in config.target_modules if t in usual_feedforwards(model)]
        found = 0
        for path, module in list(model.named_modules()):
            if ".base_layer" in f".{path}" or not config.targets(path):
                continue
            if not isinstance(module, AdapterLayer):
                fits = isinstance(module, Linear) or is_transposed(module)
                if not (fits or (isinstance(module, Embedding) and isinstance(config, LoraConfig))):
                    raise ArgumentError(
                        f"{type(config).__name__}: {path} is a {type(module).__name__}; adapters are for "
                        "linear layers and LoRA's also for embeddings. Name others in target_modules."
                    )
                if isinstance(config, IA3Config):
                    module = IA3Layer(module, config.is_feedforward(path))
                else:
                    module = LoraLayer(module)
                model.set_submodule(path, module)
            module.add(name, config, path)
            found += 1
        if not found:
            linear = sorted({p.rpartition(".")[2] for p, m in model.named_modules() if isinstance(m, Linear)})
            raise ArgumentError(
                f"{type(config).__name__}: target_modules {config.target_modules!r} names no module of "
                f"{type(model).__name__}. Its linear layers are called {', '.join(linear)}."
            )

    def set_adapter(self, adapter_name: str | None) -> None:
        """Let an adapter count, and train it alone; None: the model as it was.

        Raises:
            RangeError: there is none of that name.
        """
        if adapter_name is not None and adapter_name not in self.peft_config:
            raise RangeError(
                f"set_adapter: there is no adapter {adapter_name!r}. There are {', '.join(self.peft_config)}."
            )
        self._count(adapter_name)
        config = self.peft_config.get(adapter_name or "")
        trains = config is not None and not config.inference_mode
        mark = f".{adapter_name}"
        for path, p in self.named_parameters():
            if not p.dtype.is_quantized:
                p.requires_grad_(trains and (f"{path}.".find(f"{mark}.") >= 0))
        biases = getattr(config, "bias", "none") if trains else "none"
        for path, p in self.base_model.named_parameters():
            if biases != "none" and path.endswith("bias") and is_trained_bias(path, biases):
                p.requires_grad_(True)
        if adapter_name is not None:
            self.active_adapter = adapter_name

    def _count(self, name: str | None) -> None:
        for layer in self._layers():
            has = name in getattr(layer, "scaling", ()) or name in getattr(layer, "ia3_l", ())
            layer.active = (name,) if name is not None and has else ()
        for whole in self._wholes():
            whole.active = name if name is not None and name in whole.modules_to_save else None
        prompt = self._prompt()
        if prompt is not None:
            prompt.active = name if name is not None and name in prompt.prompts else None

    @contextmanager
    def disable_adapter(self) -> Iterator[None]:
        """Within it, the model computes as it did without adapters."""
        self._count(None)
        try:
            yield
        finally:
            self._count(self.active_adapter)

    def get_nb_trainable_parameters(self) -> tuple[int, int]:
        """Numbers that are trained, and all."""
        counts = [(p.numel(), p.requires_grad) for p in self.parameters()]
        return sum(n for n, on in counts if on), sum(n for n, _ in counts)

    def print_trainable_parameters(self) -> None:
        """Print how many numbers are trained."""
        trained, total = self.get_nb_trainable_parameters()
        share = 100 * trained / total
        print(f"trainable params: {trained:,d} || all params: {total:,d} || trainable%: {share:.4f}")

    # Merging

    def merge_adapter(self) -> None:
        """Make the adapter part of the weights; quantized ones become float32 as long as it lasts."""
        for layer in self._layers():
            layer.merge()

    def unmerge_adapter(self) -> None:
        """Give the layers the weights that they had."""
        for layer in self._layers():
            layer.unmerge()

    def merge_and_unload(self) -> Any:
        """The model with the adapter in its weights, and no adapter layers any more.

        Raises:
            ArgumentError: prompts are rows before the text, and no weights.
        """
        if self._prompt() is not None:
            raise ArgumentError("merge_and_unload: a prompt is no change of weights. Keep the PeftModel.")
        self.merge_adapter()
        return self.unload()

    def unload(self) -> Any:
        """The model without adapter layers, as it computes with what is merged."""
        model = self.get_base_model()
        for path, module in list(model.named_modules()):
            if isinstance(module, AdapterLayer):
                model.set_submodule(path, module.base_layer)
            elif isinstance(module, Whole):
                model.set_submodule(path, module._chosen())
            elif isinstance(module, PromptEmbedding):
                model.set_submodule(path, module.base_layer)
        return model


def get_peft_model(
    model: Module, peft_config: PeftConfig, adapter_name: str = "default", tokenizer: Any = None
) -> PeftModel:
    """A model with a new adapter; the model's own parameters are frozen.

    Args:
        model: any module; its layers are replaced in place.
        peft_config: a `LoraConfig`, `IA3Config` or `PromptTuningConfig`.
        adapter_name: of the adapter.
        tokenizer: for prompt tuning that begins with a text.

    Raises:
        ArgumentError: the adapter finds none of its modules.

    Source: https://huggingface.co/docs/peft/package_reference/peft_model#peft.get_peft_model

    Example:
        >>> import pellucid as torch
        >>> from pellucid.train import LoraConfig, get_peft_model
        >>> with torch.device("cpu"):
        ...     network = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
        ...     tuned = get_peft_model(network, LoraConfig(r=2, target_modules=["0"]))
        >>> tuned.print_trainable_parameters()
        trainable params: 32 || all params: 122 || trainable%: 26.2295
    """
    if not isinstance(peft_config, PeftConfig):
        raise ArgumentError(
            f"get_peft_model: peft_config must be a LoraConfig or the like, not {peft_config!r}."
        )
    return PeftModel(model, peft_config, adapter_name, tokenizer)


def load_adapter(
    model: Module, source: Any, adapter_name: str = "default", is_trainable: bool = False
) -> PeftModel:
    """A model with an adapter that peft, or `PeftModel.save_pretrained`, wrote.

    Args:
        model: the model, or a `PeftModel`, which gets another adapter.
        source: the folder.
        adapter_name: its name here.
        is_trainable: whether it is trained further.

    Raises:
        FormatError: a file is broken, or is another kind of adapter.
        WeightError: it is for another model.
        SourceError: a file cannot be read.

    Source: https://huggingface.co/docs/peft/package_reference/peft_model#peft.PeftModel.from_pretrained
    """
    return now(_load(model, source, adapter_name, is_trainable))


async def load_adapter_async(
    model: Module, source: Any, adapter_name: str = "default", is_trainable: bool = False
) -> PeftModel:
    """The awaitable twin of `load_adapter`."""
    return await later(_load(model, source, adapter_name, is_trainable))


def _load(model: Any, source: Any, name: str, trains: bool) -> Generator[tuple, Any, PeftModel]:
    folder = folder_of(source)
    files = {}
    for file in (CONFIG, WEIGHTS):
        files[file] = yield (folder, "read", (file,), {})
    config = PeftConfig.from_json(files[CONFIG])
    config.inference_mode = not trains
    if isinstance(config, PromptTuningConfig):
        config.prompt_tuning_init = "RANDOM"  # the rows are in the file
    if isinstance(model, PeftModel):
        model.add_adapter(name, config)
        model.set_adapter(name)
    else:
        model = PeftModel(model, config, name)
    model.load_adapter_files(files, name)
    return model


__all__ = ["PeftModel", "get_peft_model", "load_adapter", "load_adapter_async"]
