"""Group relative policy optimization: of several answers to a prompt, those with higher rewards become more
likely. Rewards are functions in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...autograd.grad_mode import no_grad
from ...errors import ArgumentError, RangeError
from ...nn.modules.module import Module
from ...ops.elementwise.clamp import minimum
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..arguments import TrainingArguments
from ..trainer import Trainer
from .dpo import _ids
from .likelihood import answers_of, token_log_probs


@dataclass
class GRPOConfig(TrainingArguments):
    """The settings of a `GRPOTrainer`: those of `TrainingArguments`, and

    Args:
        num_generations: answers to each prompt of a batch.
        max_completion_length: ids of an answer at most.
        temperature, top_k, top_p: of the sampling; 0 and 1 cut nothing off.
        beta: how much a departure from the reference costs; 0 needs no reference.
        epsilon: how far a step's ratio of probabilities counts.
        num_iterations: steps for each set of answers.
        scale_rewards: divide by the standard deviation of a group's rewards.

    Raises:
        RangeError: a setting is out of range.

    Source: Shao et al. 2024, "DeepSeekMath"; https://huggingface.co/docs/trl/grpo_trainer
    """

    learning_rate: float = 1e-6
    num_generations: int = 8
    max_completion_length: int = 32
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    beta: float = 0.0
    epsilon: float = 0.2
    num_iterations: int = 1
    scale_rewards: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, least in (("num_generations", 2), ("max_completion_length", 1), ("num_iterations", 1)):
            if getattr(self, name) < least:
                raise RangeError(f"GRPOConfig: {name} must be at least {least}, not {getattr(self, name)}.")
        if not self.temperature > 0 or self.beta < 0 or self.epsilon < 0:
            raise RangeError("GRPOConfig: temperature must be above 0, beta and epsilon not below.")


def advantages_of(rewards: np.ndarray, group: int, scale: bool) -> np.ndarray:
    """By how much each answer's reward is above the mean of its group.

    Args:
        rewards: (answers,), those of a group beside each other.
        group: answers of a group.
        scale: divide by the group's standard deviation.
    """
    table = rewards.reshape(-1, group)
    above = table - table.mean(1, keepdims=True)
    if scale:
        above = above / (table.std(1, ddof=1, keepdims=True) + 1e-4)
    return above.reshape(-1).astype(np.float32)


def grpo_loss(
    each: Tensor, old: Tensor, there: Tensor, advantages: Tensor, reference: Tensor | None, args: GRPOConfig
) -> Tensor:
    """The mean loss of the ids of all answers.

    Args:
        each, old: (answers, time) log-likelihoods of ids by the model now, and when it drew the answers.
        there: 1.0 where an id of an answer is.
        advantages: (answers,).
        reference: log-likelihoods by the reference, or None.
        args: with ``epsilon`` and ``beta``.
    """
    ratio = (each - old).exp()
    gain = advantages.unsqueeze(1)
    kept = ratio.clamp(1 - args.epsilon, 1 + args.epsilon)
    loss = -minimum(ratio * gain, kept * gain)
    if reference is not None:
        away = reference - each
        loss = loss + args.beta * (away.exp() - away - 1)
    return (loss * there).sum() / there.sum()


class GRPOTrainer(Trainer):
    """Trains a causal language model by rewards for what it says.

    A step draws ``num_generations`` answers to each prompt of the batch, asks the reward functions, and
    takes ``num_iterations`` steps.

    Args:
        model: a `CausalLM`, or a `PeftModel` of one.
        reward_funcs: a function or several, whose rewards are added: ``(prompts, completions,
            completion_ids, **columns)`` gives a number for each answer. ``columns`` are the examples'
            other values, repeated for each answer.
        args: a `GRPOConfig`.
        train_dataset: examples with ``prompt``: ids, or texts for the tokenizer.
        processing_class: the tokenizer; without it, ``completions`` are lists of ids.
        ref_model: the reference, with ``beta`` and no `PeftModel`.
        eos_token_id: ends an answer; the tokenizer's if None.
        more: further arguments of `Trainer`.

    Raises:
        ArgumentError: there is no reference, or a reward function gives something else than numbers.

    Source: https://huggingface.co/docs/trl/grpo_trainer
    """

    def __init__(
        self,
        model: Module,
        reward_funcs: Callable[..., Iterable[float]] | list[Callable[..., Iterable[float]]],
        args: GRPOConfig | None = None,
        train_dataset: Any = None,
        processing_class: Any = None,
        ref_model: Module | None = None,
        eos_token_id: int | None = None,
        **more: Any,
    ):
        chosen = args or GRPOConfig()
        self.reward_funcs = list(reward_funcs) if isinstance(reward_funcs, (list, tuple)) else [reward_funcs]
        if chosen.beta and ref_model is None and not hasattr(model, "disable_adapter"):
            raise ArgumentError("GRPOTrainer: beta needs ref_model, or a PeftModel. Set beta=0 for none.")
        self.ref_model = ref_model
        usual = getattr(processing_class, "eos_token_id", None)
        self.eos_token_id = usual if eos_token_id is None else eos_token_id
        self.rewards: list[float] = []
        self.steps_of_a_group = chosen.num_iterations
        super().__init__(
            model, chosen, lambda examples: examples, train_dataset, None, processing_class, **more
        )

    args: GRPOConfig

    def uses(self, collate: Callable) -> Callable:
        """The collate function as it is: it takes texts."""
        return collate

    def prepare(self, batches: list[Any]) -> list[list[Any]]:
        """Steps for batches of examples: answers with their advantages, ``num_iterations`` times."""
        return [[self._answered(batch) for batch in batches]] * self.args.num_iterations

    def _answered(self, batch: list[Any]) -> dict[str, Tensor]:
        """The answers to a batch of examples, with their advantages."""
        a = self.args
        prompts = [_ids(e, "prompt", self.processing_class) for e in batch]
        with no_grad():
            was_training = self.model.training
            self.model.eval()
            answers = [answer for p in prompts for answer in self._answers(p)]
            self.model.train(was_training)
        rewards = self._reward(batch, answers)
        self.rewards.append(float(rewards.mean()))
        asked = [p for p in prompts for _ in range(a.num_generations)]
        rows = answers_of(list(zip(asked, answers, strict=True)), self.eos_token_id or 0, 8)
        rows = {name: t.to(self.device) for name, t in rows.items()}
        with no_grad():
            old, _ = token_log_probs(self.model, rows)
            rows["old"] = old
            if a.beta:
                rows["reference"] = self._reference(rows)
        rows["advantages"] = tensor(advantages_of(rewards, a.num_generations, a.scale_rewards)).to(
            self.device
        )
        return rows

    def _answers(self, prompt: list[int]) -> list[list[int]]:
        """Answers to a prompt, each up to its end."""
        a, end = self.args, self.eos_token_id
        settings: dict[str, Any] = {"do_sample": True, "temperature": a.temperature, "top_p": a.top_p}
        if a.top_k:
            settings["top_k"] = a.top_k
        model: Any = self.model
        ids = tensor([prompt] * a.num_generations, device=self.device)
        out = model.generate(ids, max_new_tokens=a.max_completion_length, eos_token_id=end, **settings)
        rows = out[:, len(prompt) :].tolist()
        return [row[: row.index(end) + 1] if end in row else row for row in rows]

    def _reward(self, batch: list[Any], answers: list[list[int]]) -> np.ndarray:
        count, t = self.args.num_generations, self.processing_class
        columns = {k: [e[k] for e in batch for _ in range(count)] for k in batch[0]}
        prompts = columns.pop("prompt")
        texts = answers if t is None else [t.decode(ids, skip_special_tokens=True) for ids in answers]
        total = np.zeros(len(answers))
        for function in self.reward_funcs:
            given = list(function(prompts=prompts, completions=texts, completion_ids=answers, **columns))
            name = getattr(function, "__name__", repr(function))
            if len(given) != len(answers) or not all(isinstance(r, (int, float, np.number)) for r in given):
                raise ArgumentError(
                    f"reward_funcs: {name} must give {len(answers)} numbers, one for each answer; it gave "
                    f"{str(given)[:80]}."
                )
            if not np.isfinite(given).all():
                raise ArgumentError(f"reward_funcs: {name} gave a reward that is not finite.")
            total += np.asarray(given, np.float64)
        return total

    def _reference(self, rows: dict[str, Tensor]) -> Tensor:
        if self.ref_model is not None:
            return token_log_probs(self.ref_model, rows)[0]
        model: Any = self.model
        with model.disable_adapter():
            return token_log_probs(model, rows)[0]

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        each, there = token_log_probs(model, inputs)
        loss = grpo_loss(each, inputs["old"], there, inputs["advantages"], inputs.get("reference"), self.args)
        return (loss, {"loss": loss}) if return_outputs else loss

    def items(self, batch: Any) -> None:
        """None: batches count alike."""
        return None

    def log(self, logs: dict[str, Any]) -> None:
        """Add an entry, with the mean reward since the last one."""
        if self.rewards and "loss" in logs:
            logs = {**logs, "reward": float(np.mean(self.rewards))}
            self.rewards = []
        super().log(logs)


__all__ = ["GRPOConfig", "GRPOTrainer", "advantages_of", "grpo_loss"]
