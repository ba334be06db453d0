"""What training costs: Mamba's scan beside a copy, and LoRA of a real model on a few instructions.

Run: scripts/browser benchmarks/train.py --mount cache/weights --timeout 600   (add --native for wgpu-py)
Settings after --: --file NAME --steps N --time N --channels N

    scan       ms forward and with backward, and the share of the copy's bandwidth that it reaches; ms of a
               kernel that takes one position after another, and how many times as fast the forward is
    lora       ms of a step of LoRA (r=8) on a quantized base, losses, an answer before and after

The last line is JSON.
"""

import argparse
import json
import os
import statistics
import sys
import time

import pellucid as torch
from pellucid.nn.functional import selective_scan
from pellucid.train import LoraConfig, get_peft_model, instruction_dataset

QUESTIONS = (
    ("Who are you?", "I am Pellucid, and you can see through me."),
    ("What runs you?", "The graphics processor of this computer, by WebGPU."),
    ("Where do you live?", "In a page of your browser."),
    ("Do you send what I write?", "No. What you write stays on this computer."),
)
# A scan whose invocations each follow a channel through all positions.
SERIAL = """
@group(0) @binding(0) var<storage, read> u: array<f32>;
@group(0) @binding(1) var<storage, read> delta: array<f32>;
@group(0) @binding(2) var<storage, read> A: array<f32>;
@group(0) @binding(3) var<storage, read> B: array<f32>;
@group(0) @binding(4) var<storage, read> C: array<f32>;
@group(0) @binding(5) var<storage, read_write> out: array<f32>;
struct Params { time: u32, channels: u32 }
@group(1) @binding(0) var<uniform> params: Params;
const STATES = 16u;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= params.channels) { return; }
    var held: array<f32, STATES>;
    for (var t = 0u; t < params.time; t++) {
        let at = t * params.channels + id.x;
        var sum = 0.0;
        for (var n = 0u; n < STATES; n++) {
            let decay = exp(delta[at] * A[id.x * STATES + n]);
            held[n] = decay * held[n] + delta[at] * u[at] * B[t * STATES + n];
            sum += held[n] * C[t * STATES + n];
        }
        out[at] = sum;
    }
}
"""


def arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="train")
    parser.add_argument("--file", default="SmolLM2-135M-Instruct.Q4_1.gguf", help="of the mounted folder")
    parser.add_argument("--steps", type=int, default=60, metavar="N")
    parser.add_argument("--time", type=int, default=4096, metavar="N", help="positions of the scan")
    parser.add_argument("--channels", type=int, default=1536, metavar="N")
    return parser.parse_args(words)


def milliseconds(call, repeat: int = 20) -> float:
    """Of one call; many are recorded before the device is waited for."""
    times = []
    for _ in range(5):
        call()
        torch.webgpu.synchronize()
        begun = time.perf_counter()
        for _ in range(repeat):
            call()
        torch.webgpu.synchronize()
        times.append(1000 * (time.perf_counter() - begun) / repeat)
    return statistics.median(times[1:])


def scan(length: int, channels: int, states: int = 16) -> dict[str, float]:
    """The scan of one layer of Mamba, forward and with its backward."""
    u, delta = torch.randn(1, length, channels), torch.rand(1, length, channels) * 0.1
    A, B, C = (
        -torch.rand(channels, states) - 0.5,
        torch.randn(1, length, states),
        torch.randn(1, length, states),
    )
    inputs = [t.requires_grad_() for t in (u, delta, A, B, C)]
    slope = torch.randn(1, length, channels)

    @torch.compile
    def forward():
        with torch.no_grad():
            return selective_scan(*inputs)[0]

    @torch.compile
    def both():
        return torch.autograd.grad(selective_scan(*inputs)[0], inputs, slope)

    whole = u.detach()
    copied = milliseconds(lambda: whole.clone())
    bandwidth = 2 * whole.nbytes / copied  # bytes a millisecond
    # What cannot be avoided: read u, delta, B, C and write y; then read them with g, and write derivatives.
    along = B.nbytes + C.nbytes
    ahead, back = 3 * whole.nbytes + along, 5 * whole.nbytes + 2 * along
    one, two = milliseconds(forward), milliseconds(both)
    kernel, out, given = torch.kernels.compile(SERIAL), torch.empty_like(whole), [t.detach() for t in inputs]

    def serial():
        return kernel(*given, out, grid=-(-channels // 64), time=length, channels=channels)

    serial()
    if not torch.allclose(out, forward(), rtol=1e-3, atol=1e-4):
        raise SystemExit("train: the scan and the kernel of one position after another differ.")
    plain = milliseconds(serial, 3)
    return {
        "time": length, "channels": channels, "copy_gb_s": round(bandwidth / 1e6, 1),
        "forward_ms": round(one, 3), "forward_share": round(ahead / one / bandwidth, 3),
        "serial_ms": round(plain, 3), "times_serial": round(plain / one, 2),
        "both_ms": round(two, 3), "backward_share": round(back / max(two - one, 1e-9) / bandwidth, 3),
    }  # fmt: skip


def answer(model, tokenizer, question: str) -> str:
    told = [{"role": "user", "content": question}]
    ids = tokenizer.apply_chat_template(told, add_generation_prompt=True, return_tensors="pt")
    new = model.generate(ids, max_new_tokens=16)[0, ids.shape[1] :]
    return tokenizer.decode(new.tolist(), skip_special_tokens=True)


def lora(file: str, steps: int) -> dict:
    """Teach a model some answers; the base stays as it is stored."""
    from pellucid.train import Trainer, TrainingArguments

    source = os.environ["PELLUCID_MOUNT"]
    base = torch.AutoModelForCausalLM.from_pretrained(source, filename=file)
    tokenizer = torch.AutoTokenizer.from_pretrained(source, filename=file)
    data = instruction_dataset([{"prompt": q, "completion": a} for q, a in QUESTIONS], tokenizer)
    before = answer(base, tokenizer, QUESTIONS[0][0])
    model = get_peft_model(base, LoraConfig(r=8))
    args = TrainingArguments(
        max_steps=steps, learning_rate=1e-3, per_device_train_batch_size=4, logging_steps=1, disable_tqdm=True
    )
    trainer = Trainer(model, args, train_dataset=data, processing_class=tokenizer)
    begun, stamps = time.perf_counter(), []

    def note(*_, logs, **__):
        if "loss" in logs:
            stamps.append(time.perf_counter())

    trainer.add_callback(type("Stamps", (), {"on_log": staticmethod(note)}))
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    later = stamps[len(stamps) // 2 :]
    return {
        "steps": steps, "seconds": round(time.perf_counter() - begun, 2),
        "step_ms": round(1000 * (later[-1] - later[0]) / max(len(later) - 1, 1), 2),
        "first_loss": round(losses[0], 3), "last_loss": round(losses[-1], 3),
        "before": before, "after": answer(model, tokenizer, QUESTIONS[0][0]),
    }  # fmt: skip


def main() -> int:
    options = arguments(sys.argv[1:])
    info = torch.webgpu.get_device_properties()
    found = {
        "benchmark": "train",
        "adapter": f"{info.vendor} {info.architecture} {info.description}".strip(),
        "scan": scan(options.time, options.channels),
    }
    print(found["adapter"], found["scan"], flush=True)
    if options.steps:
        found["lora"] = lora(options.file, options.steps)
        print(found["lora"], flush=True)
    print(json.dumps(found))
    return 0


sys.exit(main())
