"""Training runs beside PyTorch's loops: losses, accumulation, resuming, pausing, what is logged and kept."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch as pytorch

import pellucid as torch
from pellucid import nn
from pellucid.errors import ArgumentError, RangeError
from pellucid.train import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from pellucid.train.data.loader import EpochSampler


@pytest.fixture(autouse=True)
def on_cpu():
    with torch.device("cpu"):
        yield


class Network(nn.Module):
    """Six numbers to three classes."""

    def __init__(self, dropout: float = 0.0):
        super().__init__()
        self.a, self.norm, self.drop, self.b = (
            nn.Linear(6, 16),
            nn.LayerNorm(16),
            nn.Dropout(dropout),
            nn.Linear(16, 3),
        )

    def forward(self, x, labels=None):
        logits = self.b(self.drop(self.norm(self.a(x)).tanh()))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits}


def examples(count: int = 40) -> list[dict]:
    rng = np.random.default_rng(3)
    x = rng.normal(size=(count, 6)).astype(np.float32)
    return [{"x": row, "label": int(np.argmax(row[:3])), "name": "left out"} for row in x]


def trainer(folder=None, dropout=0.0, callbacks=(), device="cpu", data=None, **settings) -> Trainer:
    torch.manual_seed(7)
    network = Network(dropout).to(device)
    settings = {
        "learning_rate": 0.03, "per_device_train_batch_size": 4, "logging_steps": 1, "save_steps": 5,
        "disable_tqdm": True, "num_train_epochs": 2,
    } | settings  # fmt: skip
    data = examples() if data is None else data
    args = TrainingArguments(folder, **settings)
    return Trainer(network, args, train_dataset=data, eval_dataset=data[:9], callbacks=callbacks)


def bits(t: Trainer) -> list[bytes]:
    return [p.detach().cpu().numpy().tobytes() for p in t.model.parameters()]


def losses(t: Trainer) -> list[float]:
    return [entry["loss"] for entry in t.state.log_history if "loss" in entry]


def pytorch_losses(t: Trainer, steps: int, accumulated: int, make) -> list[float]:
    """The same run as a loop of PyTorch."""
    network = pytorch.nn.ModuleDict(
        {"a": pytorch.nn.Linear(6, 16), "norm": pytorch.nn.LayerNorm(16), "b": pytorch.nn.Linear(16, 3)}
    )
    network.load_state_dict(
        {k: pytorch.tensor(v.detach().cpu().numpy()) for k, v in t.model.state_dict().items()}
    )
    optimizer = make(network.parameters())
    schedule = pytorch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 - k / steps)
    sampler, data, found, epoch = EpochSampler(t.train_dataset, t.args.seed), t.train_dataset, [], 0
    while len(found) < steps:
        sampler.set_epoch(epoch)
        order, epoch = list(sampler), epoch + 1
        batches = [order[k : k + 4] for k in range(0, len(order), 4)]
        for k in range(0, len(batches), accumulated):
            group, total = batches[k : k + accumulated], 0.0
            for batch in group:
                x = pytorch.tensor(np.stack([data[k]["x"] for k in batch]))
                y = pytorch.tensor([data[k]["label"] for k in batch])
                hidden = network["norm"](network["a"](x)).tanh()
                loss = pytorch.nn.functional.cross_entropy(network["b"](hidden), y) / len(group)
                loss.backward()
                total += loss.item()
            pytorch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            schedule.step()
            found.append(total)
            if len(found) == steps:
                break
    return found


@pytest.mark.parametrize("device", ["cpu", pytest.param("webgpu", marks=pytest.mark.gpu)])
def test_fifty_steps_equal_pytorch(device):
    t = trainer(max_steps=50, device=device)
    wanted = pytorch_losses(t, 50, 1, lambda p: pytorch.optim.AdamW(p, lr=0.03, weight_decay=0))
    result = t.train()
    assert result.global_step == 50
    np.testing.assert_allclose(losses(t), wanted, atol=1e-3)
    assert abs(result.training_loss - np.mean(wanted)) < 1e-3
    if device == "webgpu":
        assert "replays of" in t.explain()


def test_accumulation_equals_pytorch():
    """Ten batches in groups of three: the last group of an epoch has one."""
    t = trainer(max_steps=12, gradient_accumulation_steps=3, optim="sgd", optim_args={"momentum": 0.9})
    wanted = pytorch_losses(t, 12, 3, lambda p: pytorch.optim.SGD(p, lr=0.03, momentum=0.9))
    t.train()
    np.testing.assert_allclose(losses(t), wanted, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize(("half", "device"), [("bf16", "webgpu"), ("fp16", "cpu")])
def test_half_types_with_accumulation(half, device):
    wanted = trainer(max_steps=5, gradient_accumulation_steps=2)
    wanted.train()
    got = trainer(max_steps=5, device=device, gradient_accumulation_steps=2, **{half: True})
    got.train()
    np.testing.assert_allclose(losses(got), losses(wanted), atol=2e-2)


def test_what_is_logged_and_left_out():
    t = trainer(num_train_epochs=1, logging_steps=4, eval_strategy="epoch", logging_first_step=True)
    result = t.train()
    history = t.state.log_history
    assert [e["step"] for e in history if "loss" in e] == [1, 4, 8]
    assert set(history[0]) == {"step", "epoch", "loss", "grad_norm", "learning_rate"}
    assert history[0]["learning_rate"] == 0.03
    assert history[-2]["eval_loss"] < history[0]["loss"]
    assert history[-1]["train_loss"] == result.training_loss
    assert t.state.epoch == 1.0
    json.loads(t.state.to_json())


@pytest.mark.parametrize(("at", "dropout"), [(5, 0.3), (10, 0.0), (15, 0.3)])
def test_a_resumed_run_ends_in_the_same_bits(tmp_path, at, dropout):
    first = trainer(tmp_path, dropout)
    result = first.train()
    for step in (5, 10, 15, 20):
        if step > at:
            (tmp_path / f"checkpoint-{step}" / "checksums.json").unlink()
    again = trainer(tmp_path, dropout)
    with pytest.warns(UserWarning, match="no complete checkpoint"):
        resumed = again.train(resume_from_checkpoint=True)
    assert bits(again) == bits(first)
    assert resumed.global_step == result.global_step == 20
    assert losses(again) == losses(first)
    assert resumed.training_loss == pytest.approx(result.training_loss, abs=1e-12)


def test_a_resumed_run_of_a_stream(tmp_path):
    class Stream:
        def __iter__(self):
            return iter(examples(18))

    runs = []
    for folder in (None, tmp_path):
        torch.manual_seed(7)
        args = TrainingArguments(
            folder, max_steps=12, per_device_train_batch_size=4, save_steps=7, disable_tqdm=True
        )
        runs.append(Trainer(Network(), args, train_dataset=Stream()))
        runs[-1].train()
    again = Trainer(Network(), runs[1].args, train_dataset=Stream())
    again.train(resume_from_checkpoint=str(tmp_path / "checkpoint-7"))
    assert bits(again) == bits(runs[0]) == bits(runs[1])
    assert again.state.epoch == runs[0].state.epoch


def test_the_oldest_checkpoints_go_and_the_best_stays(tmp_path):
    class Rise(TrainerCallback):
        """Evaluations get worse after step 10."""

        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step >= 10:
                for group in kwargs["optimizer"].param_groups:
                    group["lr"] = 5.0

    t = trainer(
        tmp_path, callbacks=[Rise], eval_strategy="steps", eval_steps=5, save_total_limit=2,
        load_best_model_at_end=True, lr_scheduler_type="constant",
    )  # fmt: skip
    t.train()
    assert t.state.best_global_step == 10
    assert sorted(p.name for p in tmp_path.iterdir()) == ["checkpoint-10", "checkpoint-20"]
    best = min(e["eval_loss"] for e in t.state.log_history if "eval_loss" in e)
    assert t.evaluate()["eval_loss"] == pytest.approx(best, abs=1e-6)


def test_early_stopping():
    t = trainer(
        callbacks=[EarlyStoppingCallback(early_stopping_patience=2, early_stopping_threshold=10.0)],
        eval_strategy="steps", eval_steps=2, metric_for_best_model="loss", num_train_epochs=9,
    )  # fmt: skip
    assert t.train().global_step == 6
    with pytest.raises(RangeError, match="needs metric_for_best_model"):
        trainer(callbacks=[EarlyStoppingCallback]).train()


def test_pause_and_resume(tmp_path):
    class Pause(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step in (3, 10):
                kwargs["trainer"].pause()

    whole = trainer(dropout=0.2)
    whole.train()
    t = trainer(dropout=0.2, callbacks=[Pause])
    assert t.train().global_step == 3
    torch.rand(5)
    assert t.resume().global_step == 10
    torch.rand(5)
    assert t.resume().global_step == 20
    assert bits(t) == bits(whole)
    assert losses(t) == losses(whole)
    with pytest.raises(RangeError, match="nothing was begun"):
        trainer().resume()


def test_gradient_checkpointing_computes_the_same():
    class Deep(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(6, 6) for _ in range(3)])

        def forward(self, x, labels=None):
            for layer in self.layers:
                x = layer(x).tanh()
            return {"loss": nn.functional.cross_entropy(x, labels)}

    found = []
    for on in (False, True):
        torch.manual_seed(7)
        args = TrainingArguments(max_steps=4, gradient_checkpointing=on, disable_tqdm=True)
        t = Trainer(Deep(), args, train_dataset=examples())
        t.train()
        found.append(bits(t))
        assert not any("forward" in vars(layer) for layer in t.model.layers)
    assert found[0] == found[1]
    with pytest.raises(RangeError, match="has no list of layers"):
        trainer(gradient_checkpointing=True).train()


def test_predict_and_metrics():
    t = trainer()
    t.compute_metrics = lambda p: {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}
    found = t.predict(examples(11))
    assert found.predictions.shape == (11, 3)
    assert found.label_ids.shape == (11,)
    assert set(found.metrics) >= {"test_loss", "test_accuracy"}
    assert t.evaluate({"a": examples(5), "b": examples(6)}).keys() >= {"eval_a_loss", "eval_b_accuracy"}
    plain = t.predict([{"x": e["x"]} for e in examples(3)])
    assert plain.label_ids is None
    assert plain.predictions.shape == (3, 3)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"per_device_train_batch_size": 0}, "per_device_train_batch_size must be a whole number from 1"),
        ({"optim": "adam9"}, "optim must be one of adamw"),
        ({"lr_scheduler_type": "up"}, "lr_scheduler_type must be one of linear"),
        ({"bf16": True, "fp16": True}, "exclude each other"),
        ({"load_best_model_at_end": True}, "Set save_strategy and eval_strategy alike"),
        ({"learning_rate": -1}, "learning_rate must be a number from 0"),
        ({"save_total_limit": 0}, "at least 1"),
    ],
)
def test_settings_that_are_refused(settings, words):
    with pytest.raises(RangeError, match=words):
        TrainingArguments("out", **settings)


def test_what_cannot_be_trained():
    with pytest.raises(ArgumentError, match="gave no loss"):
        trainer(data=[{"x": e["x"]} for e in examples()]).train()
    with pytest.raises(ArgumentError, match=r"nothing that Network\.forward takes: x, labels"):
        trainer(data=[{"y": 1.0}] * 8).train()
    with pytest.raises(ArgumentError, match="anew for each epoch"):
        Trainer(Network(), TrainingArguments(max_steps=1), train_dataset=iter(examples())).train()
    t = trainer()
    for p in t.model.parameters():
        p.requires_grad_(False)
    with pytest.raises(RangeError, match="no parameters to optimize"):
        t.train()
    with pytest.raises(ArgumentError, match="must be a module"):
        Trainer("model")


def test_trained_settings_are_kept(tmp_path):
    t = trainer(tmp_path, num_train_epochs=1)
    t.train()
    kept = json.loads((Path(tmp_path) / "checkpoint-10" / "training_args.json").read_text())
    assert TrainingArguments.from_dict(kept) == t.args
