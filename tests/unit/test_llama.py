"""llama.cpp in the rows of the language model: functions of Python stand for its own; nothing is fetched."""

import ctypes
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from paths import ROOT

sys.path.append(str(ROOT / "benchmarks"))

from peers import driver, libllama, llama, packages
from peers.ours.forms import Unavailable

PREFILL = {
    "name": "prefill",
    "title": "a prompt",
    "kind": "prefill",
    "prompt": 6,
    "vocabulary": 11,
    "inputs": 2,
    "units": 1,
    "unit": "ids/s",
    "work": 6,
    "context": 32,
}
DECODE = {**PREFILL, "name": "decode", "title": "further ids", "kind": "decode", "new": 4, "work": 4}


class FakeLlama:
    """The functions of llama.cpp, as far as they are called: the likeliest id is the last one plus one."""

    def __init__(self, backend="vulkan", has=("Vulkan", "CPU"), offloaded="offloaded 3/3 layers", status=0):
        self.backend, self.has, self.offloaded, self.status = backend, has, offloaded, status
        self.batches, self.cached, self.model, self.context = [], 0, {}, {}
        self.release = libllama.RELEASES["v0.5.0"]
        names = [*libllama.LLAMA, *libllama.GGML, *libllama.BASE]
        self.call = {name: getattr(self, name.removeprefix("llama_"), lambda *_: None) for name in names}

    def library(self, folder):
        return libllama.Library("v0.5.0", self.backend, folder, self.call)

    def log_set(self, listener, _):
        self.say = listener

    def model_default_params(self):
        return self.release.model()

    def context_default_params(self):
        return self.release.context()

    def ggml_backend_dev_count(self):
        return len(self.has)

    def ggml_backend_dev_get(self, i):
        return i + 1

    def ggml_backend_dev_description(self, device):
        return f"device {device}".encode()

    def ggml_backend_dev_backend_reg(self, device):
        return device

    def ggml_backend_reg_name(self, register):
        return self.has[register - 1].encode()

    def model_load_from_file(self, file, params):
        devices = (ctypes.c_void_p * 2).from_address(params.devices)
        self.model = {"file": file.decode(), "devices": list(devices), "layers": params.n_gpu_layers}
        self.say(2, f"load_tensors: {self.offloaded} to GPU\n".encode(), None)
        self.say(1, b"for its developers\n", None)
        return 7

    def vocab_n_tokens(self, _):
        return 11

    def init_from_model(self, _, params):
        self.context = {"ids": params.n_ctx, "threads": params.n_threads}
        return 8

    def get_memory(self, _):
        return 9

    def memory_clear(self, memory, _):
        assert memory == 9
        self.cached = 0

    def batch_get_one(self, ids, n):
        batch = libllama.Batch()
        batch.n_tokens, batch.token = n, ctypes.cast(ids, ctypes.POINTER(ctypes.c_int32))
        return batch

    def decode(self, _, batch):
        ids = batch.token[: batch.n_tokens]
        self.batches.append((self.cached, ids))
        self.cached += len(ids)
        self.logits = np.zeros(11, np.float32)
        self.logits[(ids[-1] + 1) % 11] = 1
        return self.status

    def get_logits_ith(self, _, i):
        assert i == -1
        return self.logits.ctypes.data


def opened(tmp_path, threads=1, **options):
    fake = FakeLlama(**options)
    return fake, libllama.Model(fake.library(tmp_path), tmp_path / "a.gguf", 32, threads)


@pytest.mark.parametrize(
    ("release", "model", "context"),
    [("b7347", (16, 72), (16, 120)), ("v0.5.0", (16, 80), (28, 160))],
)
def test_structures_have_the_layout_of_their_release(release, model, context):
    """Where the layers and threads are told, and the size, by a C compiler from the release's header."""
    found = libllama.RELEASES[release]
    assert (found.model.n_gpu_layers.offset, ctypes.sizeof(found.model)) == model
    assert (found.context.n_threads.offset, ctypes.sizeof(found.context)) == context
    assert ctypes.sizeof(libllama.Batch) == 56


def test_a_model_is_opened_on_the_device_alone(tmp_path):
    fake, model = opened(tmp_path)
    assert fake.model == {"file": f"{tmp_path}/a.gguf", "devices": [1, None], "layers": libllama.ALL_LAYERS}
    assert fake.context == {"ids": 32, "threads": 1}
    assert (model.device, model.offloaded, model.vocabulary) == ("device 1", (3, 3), 11)
    assert model.log == "load_tensors: offloaded 3/3 layers to GPU\n"


def test_the_cpu_gets_no_device(tmp_path):
    fake, model = opened(tmp_path, backend="cpu", offloaded="offloaded 0/3 layers", threads=2)
    assert fake.model["devices"] == [None, None]
    assert fake.model["layers"] == 0
    assert fake.context["threads"] == 2
    assert llama.Llama(model).facts()["library"] == "llama.cpp v0.5.0, CPU: device 2"


@pytest.mark.parametrize("said", ["offloaded 2/3 layers", "offloaded 0/3 layers", "nothing"])
def test_what_fell_back_to_the_cpu_is_refused(said, tmp_path):
    with pytest.raises(Unavailable, match=r"device 1 got \d of \d layers, so these would not be its times"):
        opened(tmp_path, offloaded=said)


def test_a_backend_without_a_device_is_refused(tmp_path):
    with pytest.raises(Unavailable, match=r"Vulkan backend found no device; .* It has: CPU \(device 1\)"):
        opened(tmp_path, has=("CPU",))


def test_a_failed_step_says_what_llama_said(tmp_path):
    _, model = opened(tmp_path, status=-3)
    with pytest.raises(RuntimeError, match=r"llama_decode of 2 ids returned -3; .*\n.*offloaded 3/3"):
        model.next([1, 2])


def test_a_prompt_is_one_batch_behind_an_empty_cache(tmp_path):
    fake, model = opened(tmp_path)
    form = llama.Llama(model).forms(PREFILL)["eager"]
    prompts = [llama.prompt(PREFILL, i) for i in range(2)]
    assert [form.unit(0), form.unit(1)] == [[(ids[-1] + 1) % 11] for ids in prompts]
    assert fake.batches == [(0, prompts[0]), (0, prompts[1])]


def test_further_ids_come_one_by_one_behind_the_prompt(tmp_path):
    fake, model = opened(tmp_path)
    form = llama.Llama(model).forms(DECODE)["eager"]
    for _ in range(2):
        fake.batches.clear()
        form.before(1)
        ids = llama.prompt(DECODE, 0)
        assert form.unit(0) == [(ids[-1] + 2 + i) % 11 for i in range(4)]
        assert fake.batches == [(0, ids), *((6 + i, [(ids[-1] + 1 + i) % 11]) for i in range(4))]


def test_its_table_and_samples(tmp_path, monkeypatch, capsys):
    _, model = opened(tmp_path)
    asked = []
    monkeypatch.setattr(llama, "open_model", lambda *given: asked.append(given) or model)
    monkeypatch.setattr("peers.native.WARM_UP", 0)
    options = SimpleNamespace(llama="vulkan", repetitions=3, row_seconds=9, out=tmp_path, json=None)
    chain = {"name": "chain", "kind": "chain"}
    assert llama.run([chain, PREFILL, DECODE], options) == 0
    assert asked == [("vulkan", 32)]
    found = json.loads((tmp_path / "llama.json").read_text())
    assert found["library"] == "llama.cpp v0.5.0, Vulkan: device 1, 3 of 3 layers"
    assert (found["backend"], found["device"], found["layers"]) == ("vulkan", "device 1", [3, 3])
    assert {name: len(row["ms"]) for name, row in found["rows"].items()} == {
        "prefill/eager": 3,
        "decode/eager": 3,
    }
    shown = capsys.readouterr().out
    assert "|  | k | llama.cpp v0.5.0, Vulkan: device 1, 3 of 3 layers |" in shown
    assert shown.count("| 1 |") == 2


def test_rows_that_it_does_not_have_are_refused():
    with pytest.raises(SystemExit, match="has the rows prefill and decode alone"):
        llama.run([{"name": "chain", "kind": "chain"}], SimpleNamespace(llama="cpu"))


def test_without_network_the_way_to_carry_is_told(tmp_path, monkeypatch):
    def missing(_):
        raise llama.machine.SetupError("Node with npm is needed")

    monkeypatch.setattr(llama, "WEIGHTS", tmp_path)
    monkeypatch.setattr(llama.assets, "npm", missing)
    monkeypatch.setattr(llama.sys, "platform", "linux")
    monkeypatch.setattr(llama.os, "uname", lambda: SimpleNamespace(machine="x86_64"))
    with pytest.raises(Unavailable, match="the weights are not on this machine"):
        llama.open_model("vulkan", 32)
    (tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf").touch()
    with pytest.raises(Unavailable, match=r"Node with npm is needed\n.*--llama vulkan --carry DIR"):
        llama.open_model("vulkan", 32)
    monkeypatch.setattr(llama.os, "uname", lambda: SimpleNamespace(machine="aarch64"))
    with pytest.raises(Unavailable, match="the builds are for Linux on x86-64; this is linux, aarch64"):
        llama.open_model("vulkan", 32)


def package(folder, release):
    """The names of the files in a package of that release."""
    bins = folder / "bins" / "linux-x64-vulkan"
    bins.mkdir(parents=True)
    for name in ("libggml-base.so", "libggml-vulkan.so", "llama-addon.node", "libllama-common.so"):
        (bins / name).write_text("no library")
    for name in ("libllama", "libggml"):
        (bins / f"{name}.vulkan.{release}.so").write_text("no library")
    (folder / "LICENSE").write_text("MIT")
    return folder


def test_another_release_is_refused(tmp_path):
    with pytest.raises(Unavailable, match=r"no llama.cpp of the releases b7347 and v0.5.0"):
        libllama.load(package(tmp_path, "v0.6.0"), "vulkan")


def test_a_backend_that_cannot_be_loaded_is_told(tmp_path):
    with pytest.raises(Unavailable, match=r"llama.cpp's Vulkan backend cannot be loaded: .*libggml-base.so"):
        libllama.load(package(tmp_path, "v0.5.0"), "vulkan")


def test_what_is_loaded_is_carried_and_no_more(tmp_path, monkeypatch):
    source = package(tmp_path / "npm" / "a-1", "v0.5.0")
    monkeypatch.setattr(packages.assets, "npm", lambda _: source)
    options = SimpleNamespace(
        source=None, ops=None, rows=None, gpu=False, names=[], llama="vulkan", carry=tmp_path / "carried"
    )
    assert driver.run(options) == 0
    carried = {file.name for file in (tmp_path / "carried" / "npm" / "a-1").rglob("*") if file.is_file()}
    assert carried == {
        "LICENSE",
        "libggml-base.so",
        "libggml-vulkan.so",
        "libggml.vulkan.v0.5.0.so",
        "libllama.vulkan.v0.5.0.so",
    }
