"""Training runs in a page, with checkpoints in OPFS; `tests/browser/test_training.py` calls them."""

import warnings

import js
import numpy as np
from pellucid_page import send
from pyodide.ffi import to_js

import pellucid as torch
from pellucid import nn
from pellucid.device.stream import stream
from pellucid.models import MambaConfig, MambaForCausalLM
from pellucid.train import Trainer, TrainingArguments, WeightHistograms
from pellucid.train.plots import report

STEPS = 16
finished: list[Trainer] = []  # runs that could not be saved


class Examples:
    """Four numbers each; `bad` is one with NaN."""

    def __init__(self, bad: int | None = None):
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(64, 4)).astype(np.float32)
        self.bad = bad

    def __len__(self):
        return len(self.x)

    def __getitem__(self, k):
        row = np.full(4, np.nan, np.float32) if k == self.bad else self.x[k]
        return torch.tensor(row), int(self.x[k, 0] > 0)


def loss(outputs, labels, **_):
    return nn.functional.cross_entropy(outputs, labels)


def trainer(folder: str, bad: int | None = None, steps: int = STEPS, **settings) -> Trainer:
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Dropout(0.1), nn.Linear(8, 2))
    args = TrainingArguments(
        f"opfs:{folder}", learning_rate=0.05, logging_steps=1, save_steps=4, max_steps=steps,
        per_device_train_batch_size=8, disable_tqdm=True, report_to=report, **settings,
    )  # fmt: skip
    return Trainer(
        network,
        args,
        train_dataset=Examples(bad),
        compute_loss_func=loss,
        callbacks=[WeightHistograms(every=4)],
    )


async def bits(run: Trainer) -> str:
    """The parameters' bits."""
    return b"".join([(await p.detach().numpy_async()).tobytes() for p in run.model.parameters()]).hex()


async def trained(folder: str, resume: bool | str = False, **given) -> dict:
    """A run to its end: where it stands, its bits, and what was warned of."""
    await torch.webgpu.open_async()
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        run = trainer(folder, **given)
        found = await run.train_async(resume_from_checkpoint=resume)
    return {"step": found.global_step, "bits": await bits(run), "warned": [str(w.message) for w in heard]}


async def filled(folder: str, resume: bool = True) -> dict:
    """Train on, where the disk is full: the run goes to its last step and says where to save."""
    run = trainer(folder)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            await run.train_async(resume_from_checkpoint=resume)
            said = ""
        except torch.errors.SourceError as error:
            said = str(error)
    finished.append(run)
    return {
        "step": run.state.global_step, "bits": await bits(run), "said": said,
        "warned": [str(w.message) for w in heard],
    }  # fmt: skip


async def saved_at_last() -> str:
    """What `filled` could not save, once there is room."""
    return await finished.pop().save_checkpoint_async()


async def spoil(path: str) -> None:
    """Change one byte of a file of the private file system."""
    *folders, name = path.split("/")
    handle = await js.navigator.storage.getDirectory()
    for folder in folders:
        handle = await handle.getDirectoryHandle(folder)
    handle = await handle.getFileHandle(name)
    data = bytearray((await (await handle.getFile()).arrayBuffer()).to_bytes())
    data[-1] ^= 1
    writable = await handle.createWritable()
    await writable.write(to_js(bytes(data)))
    await writable.close()


async def lost(folder: str) -> dict:
    """The device is lost within a run; a new one is opened, and the run goes on from its last checkpoint."""
    run = trainer(folder)

    class Losing:
        def on_step_end(self, args, state, control, **more):
            if state.global_step == 10:
                stream().host.stream.device.destroy()

    run.add_callback(Losing())
    try:
        await run.train_async()
        said = ""
    except torch.errors.DeviceError as error:
        said = str(error)
    del run
    torch.webgpu.reset()
    await torch.webgpu.open_async()
    return {"said": said, **await trained(folder, resume=True)}


async def bad_loss(folder: str) -> dict:
    """An example has NaN: what is said, and whether the parameters are still finite."""
    run = trainer(folder, bad=7)
    try:
        await run.train_async()
        said = ""
    except torch.errors.GradientError as error:
        said = str(error)
    values = [await p.detach().numpy_async() for p in run.model.parameters()]
    return {"said": said, "finite": all(bool(np.isfinite(each).all()) for each in values)}


async def written(text: str, steps: int) -> dict:
    """A Mamba learns a piece of code by heart: its losses, and how it goes on from the first letters."""
    torch.manual_seed(0)
    letters = sorted(set(text))
    config = MambaConfig(vocab_size=len(letters), hidden_size=32, num_hidden_layers=1, state_size=4)
    ids = [letters.index(letter) for letter in text]
    args = TrainingArguments(
        max_steps=steps, learning_rate=0.02, lr_scheduler_type="constant", logging_steps=1, disable_tqdm=True
    )
    run = Trainer(MambaForCausalLM(config), args, train_dataset=[{"input_ids": ids, "labels": ids}] * 8)
    with torch.webgpu.fusion(False):  # fewer kernels to compile
        await run.train_async()
    begin = torch.tensor([ids[:3]])
    made = await run.model.generate_async(begin, max_new_tokens=len(ids) - 3, eos_token_id=())
    losses = [entry["loss"] for entry in run.state.log_history if "loss" in entry]
    return {"losses": losses, "text": "".join(letters[k] for k in (await made.numpy_async())[0])}


async def interrupted(folder: str) -> dict:
    """A run until Ctrl-C, which then goes on."""
    run = trainer(folder, steps=100_000, save_strategy="no", logging_strategy="no")
    try:
        send("running", {})
        await run.train_async()
    except KeyboardInterrupt:
        stopped = run.state.global_step
    run.state.max_steps = stopped + 5
    found = await run.resume_async()
    return {"stopped": stopped, "step": found.global_step, "losses": len(await bits(run)) > 0}


async def long(folder: str, steps: int) -> dict:
    """A run that takes a while; says when it begins."""
    send("running", {})
    return await trained(folder, steps=steps)
