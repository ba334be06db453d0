"""What breaks a training run: Ctrl-C, full disks, damage, a lost device, NaN. Nothing finished is lost."""

import errno
import os
import signal

import numpy as np
import pytest

import pellucid as torch
from pellucid.device.stream import stream
from pellucid.errors import DeviceError, SourceError
from pellucid.models import LlamaConfig, LlamaForCausalLM
from pellucid.tensors.reading import ListRead
from pellucid.train import Trainer, TrainerCallback, TrainingArguments
from pellucid.train.anomalies import NonFiniteError
from pellucid.train.checkpoints.folders import LocalFolder
from train.test_trainer import Network, bits, examples, losses, trainer


def test_a_damaged_file_is_seen(tmp_path):
    t = trainer(tmp_path, num_train_epochs=1)
    t.train()
    file = tmp_path / "checkpoint-10" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.warns(UserWarning, match=r"model\.safetensors: is not what was written"):
        t.train(resume_from_checkpoint=True)
    assert [e["step"] for e in t.state.log_history if "loss" in e] == list(range(1, 11))
    with pytest.raises(SourceError, match="no complete checkpoint"):
        trainer(tmp_path / "other").train(resume_from_checkpoint=True)


def test_a_full_disk_loses_nothing(tmp_path, monkeypatch):
    """Checkpoints that cannot be written are told of; those before stay, and so does the run."""
    t, real, full = trainer(tmp_path), os.fsync, []

    def fsync(number):
        if full:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(number)

    class Fill(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            if state.global_step == 7:
                full.append(True)

    monkeypatch.setattr(os, "fsync", fsync)
    t.add_callback(Fill)
    with (
        pytest.warns(UserWarning, match="No space left on device"),
        pytest.raises(SourceError, match=r"in memory: free some room and call trainer.save_checkpoint"),
    ):
        t.train()
    assert [p.name for p in tmp_path.iterdir()] == ["checkpoint-5"]
    assert not [*tmp_path.rglob("*.partial"), *tmp_path.rglob("*.new")]
    kept = {path.name: path.read_bytes() for path in (tmp_path / "checkpoint-5").iterdir()}
    with pytest.raises(SourceError, match="No space left"):
        trainer(tmp_path, dropout=0.5, max_steps=5).train()  # in the place of one that is complete
    assert {path.name: path.read_bytes() for path in (tmp_path / "checkpoint-5").iterdir()} == kept
    full.clear()
    assert t.save_checkpoint() == "checkpoint-20"
    again = trainer(tmp_path)
    again.train(resume_from_checkpoint=True)
    assert bits(again) == bits(t)


def test_ctrl_c_within_a_step_lets_it_finish():
    """The signal comes in the middle of the update; the step ends, and the run goes on to the same bits."""
    whole, t = trainer(dropout=0.2), trainer(dropout=0.2)
    whole.train()
    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    real = torch.optim.AdamW._update

    def update(self, p, group):
        real(self, p, group)
        if t.state.global_step == 6 and p.shape == (16, 6):
            signal.raise_signal(signal.SIGINT)

    try:
        torch.optim.AdamW._update = update
        with pytest.raises(KeyboardInterrupt):
            t.train()
    finally:
        torch.optim.AdamW._update = real
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        signal.signal(signal.SIGINT, before)
    assert t.state.global_step == 7
    t.resume()
    assert bits(t) == bits(whole)


@pytest.mark.gpu
@pytest.mark.parametrize("owner", [LocalFolder, ListRead])
def test_ctrl_c_between_steps_leaves_what_was_due_to_resume(owner, tmp_path, monkeypatch):
    """While a checkpoint is written, several times; while a loss is waited for, once it was read."""
    name = "write" if owner is LocalFolder else "result"
    real, calls = getattr(owner, name), 0

    def interrupted(self, *given):
        nonlocal calls
        calls += 1
        found = real(self, *given)
        if calls in (3, 10, 17):
            raise KeyboardInterrupt
        return found

    settings = {"dropout": 0.2, "device": "webgpu", "save_strategy": "epoch", "logging_strategy": "epoch"}
    whole = trainer(tmp_path / "whole", **settings)
    whole.train()
    monkeypatch.setattr(owner, name, interrupted)
    t, take = trainer(tmp_path / "broken", **settings), Trainer.train
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            take(t)
        assert not [*tmp_path.rglob("*.new")]
        take = Trainer.resume
    take(t)
    monkeypatch.undo()
    assert (bits(t), losses(t)) == (bits(whole), losses(whole))
    assert [p.name for p in sorted((tmp_path / "broken").iterdir())] == ["checkpoint-10", "checkpoint-20"]
    again = trainer(tmp_path / "broken", **settings)
    again.train(resume_from_checkpoint=str(tmp_path / "broken" / "checkpoint-10"))
    assert bits(again) == bits(whole)


@pytest.mark.gpu
def test_a_lost_device_says_where_to_go_on(tmp_path):
    class Lose(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            if state.global_step == 7:
                stream().open().device.destroy()

    whole = trainer(dropout=0.2, max_steps=8)
    whole.train()
    wanted = losses(whole)
    with pytest.raises(DeviceError, match=r"reset\(\).*train\(resume_from_checkpoint=True\) goes on from"):
        trainer(tmp_path, dropout=0.2, device="webgpu", callbacks=[Lose], max_steps=8).train()
    torch.webgpu.reset()
    again = trainer(tmp_path, dropout=0.2, device="webgpu", max_steps=8)
    again.train(resume_from_checkpoint=True)
    np.testing.assert_allclose(losses(again), wanted, atol=1e-4)


class Careless(Network):
    def forward(self, x, labels=None):
        out = super().forward(x, labels)
        scale = x[:, 0].log().mean()  # NaN where a feature is negative
        return {"loss": out["loss"] + 0 * scale}


class Divided(Network):
    def forward(self, x, labels=None):
        none = x - x
        return {"loss": super().forward(x, labels)["loss"] + (none / none).sum()}


class Large(Network):
    def forward(self, x, labels=None):
        return super().forward(x * 1e30 * 1e20, labels)


class Root(Network):
    def forward(self, x, labels=None):
        out = super().forward(x, labels)
        return {"loss": out["loss"] + (out["logits"] * 0).sqrt().sum()}  # infinite slope at 0


def llama():
    """A model of the package, in whose second layer numbers grow too large."""
    config = LlamaConfig(
        vocab_size=16, hidden_size=16, intermediate_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=2,
    )  # fmt: skip
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        for name in ("gate_proj", "up_proj"):
            model.get_parameter(f"model.layers.1.mlp.{name}.weight").fill_(1e30)
    return model


# What is trained, the first number of the example that is changed, and what is said.
NOT_FINITE = {
    "an op": (Careless, -1.0, r"loss is nan at step \d+\. 'log' made nan of finite .*x\[:, 0\]\.log\(\)"),
    "an operator": (Divided, 0.0, r"loss is nan at step 1\. 'div' made nan of finite .*\(none / none\)\.sum"),
    "the data": (Network, np.nan, r"loss is nan at step \d+\. Its batch has nan in 'x'\. What to do: "),
    "infinity before": (Large, 1.0, r"'linear' made nan of infinite .*'mul' made infinity .*x \* 1e30 \*"),
    "a gradient": (Root, 1.0, r"norm of the gradients is nan at step 1\. .*infinite slope at 0"),
    "a model here": (llama, None, r"in Linear\.forward; 'mul' made infinity .* FeedForward\.forward\. What"),
}  # fmt: skip


@pytest.mark.parametrize("kind", NOT_FINITE)
def test_what_is_not_finite_is_named_with_op_and_line(kind):
    make, first, words = NOT_FINITE[kind]
    data = [{**e, "x": np.abs(e["x"]) + 0.1} for e in examples()]
    if first is None:
        data = [{"input_ids": [3, 4, 5], "labels": [3, 4, 5]}] * 8
    else:
        data[17]["x"][0] = first
    with torch.device("cpu"):
        torch.manual_seed(7)
        t = Trainer(make(), TrainingArguments(disable_tqdm=True, num_train_epochs=1), train_dataset=data)
        with pytest.raises(NonFiniteError, match=words) as caught:
            t.train()
    assert "learning_rate" in str(caught.value)
    assert all(np.isfinite(p.detach().numpy()).all() for p in t.model.parameters())
