"""The command ``pellucid``: inspect, convert, run, serve, lens, bench."""

import gzip
import json
import os
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import numpy as np
import pytest
import torch
import uvicorn
from click.testing import CliRunner

import pellucid
from models.gguf_files import written
from models.graph.programs import MobileNet, exported
from models.graph.programs import saved as saved_program
from models.tiny import made, saved
from pellucid.errors import ArgumentError, DTypeError
from pellucid.utils.command_line import bench as bench_command
from pellucid.utils.command_line import main
from pellucid.utils.command_line.serve import application

from static_server import StaticServer


def run(*words):
    return CliRunner().invoke(main, list(map(str, words)))


@pytest.fixture(scope="module")
def llama():
    return made("llama_tied", intermediate_size=64, num_hidden_layers=1)


@pytest.fixture(scope="module")
def folder(llama, tmp_path_factory):
    folder = saved(llama, tmp_path_factory.mktemp("cli") / "llama")
    (folder / "README.md").write_text("---\ntags:\n- a\nlicense: apache-2.0\n---\n# Model\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')
    return folder


@pytest.fixture(scope="module")
def gguf(llama, folder):
    return written(llama, folder.parent / "m.gguf", "q8_0", {"general.license": "mit"})


def test_a_folder_is_inspected(llama, folder):
    found = pellucid.inspect(folder)
    count = sum(p.numel() for p in llama.parameters())
    assert (found.format, found.parameters, found.nbytes) == ("safetensors", count, 4 * count)
    assert (found.architecture, found.loads_with) == ("LlamaForCausalLM", "AutoModelForCausalLM")
    assert (found.tokenizer, found.licence) == ("LlamaTokenizer", "apache-2.0")
    assert found.sizes == {
        "layers": 1, "hidden": 32, "heads": 4, "key heads": 2, "head columns": 8, "vocabulary": 96,
        "context": 512,
    }  # fmt: skip
    assert found.memory == {"weights": 4 * count, "keys and values of a position": 2 * 4 * 2 * 8}
    told = str(found)
    assert "model.layers.0.mlp.up_proj.weight" in told
    assert "licence       apache-2.0" in told


def test_a_gguf_is_inspected_by_ranges(gguf):
    (gguf.parent / "long.gguf").write_bytes(gguf.read_bytes() + bytes(4 << 20))
    with StaticServer(gguf.parent) as server:
        told = json.loads(run("inspect", f"{server.url}long.gguf", "--json").output)
        assert sum(r.sent for r in server.requests) < 2 << 20
    assert (told["format"], told["architecture"], told["licence"]) == ("gguf", "llama", "mit")
    assert told["dtypes"] == {"q8_0": 8, "float32": 3}
    assert told["loads_with"] == "AutoModelForCausalLM"
    assert told["memory"]["keys and values of a position"] == 128
    brief = run("inspect", gguf, "--brief").output
    assert brief.startswith("file")
    assert "up_proj" not in brief


@pytest.mark.asyncio
async def test_programs_are_inspected(tmp_path):
    x = torch.zeros(1, 3, 16, 16)
    path = saved_program(exported(MobileNet().eval(), (x,)), tmp_path / "a.pt2")
    found = await pellucid.inspect_async(path)
    assert found.operators["torch.ops.aten.conv2d.default"] == 7
    assert (found.inputs, found.loads_with) == (["pixel_values"], "export.load")
    assert [t["shape"] for t in found.tensors if t["name"] == "head.weight"] == [[5, 8]]


def test_onnx_is_inspected(tmp_path):
    from onnx import TensorProto, helper, numpy_helper, save

    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [value("x", TensorProto.FLOAT, [2, 4])],
        [value("y", TensorProto.FLOAT, [2, 3])], [numpy_helper.from_array(np.ones((4, 3), "float32"), "w")],
    )  # fmt: skip
    save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9),
        tmp_path / "a.onnx",
    )
    found = pellucid.inspect(str(tmp_path / "a.onnx"))
    assert (found.operators, found.parameters, found.dtypes) == ({"MatMul": 1}, 12, {"float32": 1})
    assert "x" in found.inputs[0]


def test_files_are_converted(folder, gguf, tmp_path):
    weights = folder / "model.safetensors"
    out = tmp_path / "a.npz"
    assert run("convert", weights, out).exit_code == 0
    with np.load(out) as arrays:
        found = arrays["model.layers.0.mlp.up_proj.weight"]
    assert found.shape == (64, 32)
    assert run("convert", weights, out).exit_code == 2
    assert run("convert", out, tmp_path / "b.safetensors", "--dtype", "bfloat16").exit_code == 0
    back = pellucid.weights.open(tmp_path / "b.safetensors")
    assert {t.dtype for t in back.values()} == {"bfloat16"}
    pellucid.convert(gguf, tmp_path / "c.safetensors", dtype="float32")
    wide = pellucid.match(tmp_path / "c.safetensors", {"blk.0.ffn_up.weight": found}, tolerance=0.02)
    assert wide
    with pytest.raises(DTypeError, match=r"is q8_0\. Say by dtype= \(--dtype\)"):
        pellucid.convert(gguf, tmp_path / "d.safetensors")
    with pytest.raises(ArgumentError, match=r"must end in \.gguf, \.safetensors or \.npz"):
        pellucid.convert(gguf, tmp_path / "d.bin")
    with pytest.raises(DTypeError, match="bfloat16, which npz does not have"):
        pellucid.convert(tmp_path / "b.safetensors", tmp_path / "d.npz")


def test_a_program_runs(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import sys, torch\nprint(torch.ones(2).sum().item(), torch.__version__, sys.argv[1:])\n"
    )
    words = [
        sys.executable,
        "-m",
        "pellucid.utils.command_line",
        "run",
        "--device",
        "cpu",
        program,
        "--x",
        "1",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stdout == "2.0 2.13.0+pellucid ['--x', '1']\n"


@pytest.mark.parametrize(
    ("source", "line", "told"),
    [
        ("import torch\ntorch.ones(2, 3) @ torch.ones(2)\n", "line 2, in <module>", "ShapeError: matmul: "),
        ("print(1\n", "line 1", "SyntaxError: "),
    ],
)
def test_an_error_of_a_program_is_told_as_python_does(tmp_path, source, line, told):
    program = tmp_path / "program.py"
    program.write_text(source)
    words = [sys.executable, "-m", "pellucid.utils.command_line", "run", "--device", "cpu", program]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 1
    first, *_, last = done.stderr.splitlines()
    assert f'File "{program}", {line}' in done.stderr
    assert told in last
    assert first.startswith(("Traceback ", "  File "))
    assert "runpy" not in done.stderr


def test_a_folder_is_served(tmp_path):
    (tmp_path / "a.js").write_text("0123456789")
    (tmp_path / "index.html").write_text("<p>")
    (tmp_path / "a.wasm").write_bytes(bytes(999))
    (tmp_path / "a.wasm.gz").write_bytes(gzip.compress(bytes(999)))
    (tmp_path / "a.js.gz").write_bytes(gzip.compress(b"of another version"))
    os.utime(tmp_path / "a.js.gz", (1, 1))
    config = uvicorn.Config(
        application(str(tmp_path), isolation=True), port=0, log_level="error", lifespan="off"
    )
    server, socket = uvicorn.Server(config), config.bind_socket()
    thread = threading.Thread(target=server.run, args=([socket],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    url = f"http://127.0.0.1:{socket.getsockname()[1]}/"

    def get(name="", **headers):
        named = {k.replace("_", "-"): v for k, v in headers.items()}
        return urllib.request.urlopen(urllib.request.Request(url + name, headers=named), timeout=10)

    try:
        part = get("a.js", Range="bytes=2-4", Origin="http://elsewhere")
        assert (part.status, part.read(), part.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
        assert part.headers["access-control-allow-origin"] == "*"
        assert "ETag" in part.headers["access-control-expose-headers"]
        assert part.headers["cross-origin-opener-policy"] == "same-origin"
        assert part.headers["content-type"].startswith("text/javascript")
        with pytest.raises(urllib.error.HTTPError, match="304"):
            get("a.js", If_None_Match=part.headers["etag"])
        assert get().read() == b"<p>"
        packed = get("a.wasm", Accept_Encoding="gzip")
        assert packed.headers["content-encoding"] == "gzip"
        assert "Accept-Encoding" in packed.headers["vary"]
        assert packed.headers["content-type"] == "application/wasm"
        assert gzip.decompress(packed.read()) == bytes(999)
        for name, asked in (
            ("a.wasm", {}),
            ("a.wasm", {"Accept_Encoding": "gzip", "Range": "bytes=0-998"}),
            ("a.js", {"Accept_Encoding": "gzip"}),
        ):
            plain = get(name, **asked)
            assert "content-encoding" not in plain.headers
            assert plain.read() == (tmp_path / name).read_bytes()
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get("../secret")
    finally:
        server.should_exit = True
        thread.join()


class Letters:
    """A tokenizer of the tiny models' 96 ids: printable letters."""

    def encode(self, text):
        return [ord(letter) - 32 for letter in text]

    def decode(self, ids):
        return "".join(chr(32 + i) for i in ids)


def test_the_lens_of_a_prompt_is_a_page(folder, llama, tmp_path, monkeypatch):
    monkeypatch.setattr("pellucid.AutoTokenizer.from_pretrained", lambda source: Letters())
    opened = []
    monkeypatch.setattr("webbrowser.open", lambda address: opened.append(address) or True)
    path = tmp_path / "lens.html"
    words = ("lens", folder, "abc", "--device", "cpu", "--output", path)
    said = run(*words)
    assert said.exit_code == 0, said.output
    assert opened == [path.as_uri()]
    told = json.loads(run(*words, "--json", "--new", 2, "--top-k", 3).output)
    assert told["tokens"][:3] == ["a", "b", "c"]
    assert len(told["tokens"]) == 5
    ids = torch.tensor([[ord(token) - 32 for token in told["tokens"]]])
    with torch.no_grad():
        expected = llama(ids).logits.softmax(-1).topk(3)
    last = told["cells"][-1]
    assert [[token for token, _ in cell] for cell in last] == [
        [chr(32 + i) for i in cell] for cell in expected.indices[0].tolist()
    ]
    np.testing.assert_allclose([[p for _, p in cell] for cell in last], expected.values[0].numpy(), rtol=1e-4)
    page = path.read_text()
    assert page.count("<tr>") == 1 + len(told["layers"])
    assert "class=last" in page
    assert "is empty" in run("lens", folder, "").output


def test_a_device_and_a_model_are_measured(folder, monkeypatch):
    told = json.loads(run("bench", folder, "--device", "cpu", "--prompt", 4, "--new", 4, "--json").output)
    assert told["device"] == "cpu"
    rates = [value for name, value in told.items() if "/s" in name or name.endswith(("us", ", s"))]
    assert len(rates) == 6
    assert all(rate > 0 for rate in rates)
    monkeypatch.setattr(bench_command, "WORDS", 1 << 10)
    monkeypatch.setattr(bench_command, "SIDE", 64)
    told = json.loads(run("bench", "--device", "webgpu", "--json").output)
    assert told["adapter"] == pellucid.webgpu.get_device_name()
    shown = run("bench", "--device", "cpu").output.splitlines()
    assert [line.split("  ")[0] for line in shown] == [
        "device",
        "product, TFLOP/s",
        "a + a, GB/s",
        "a call, us",
    ]


def test_wrong_files_end_with_a_sentence(folder, gguf, tmp_path):
    """Status 2 and what to do, not a traceback."""
    page = b"<!DOCTYPE html><html></html>"
    for name in ("page.gguf", "page.npz", "page.pt2", "page.onnx"):
        (tmp_path / name).write_bytes(page)
    np.savez(tmp_path / "in.npz", input_ids=np.ones((1, 3), np.int64))
    (tmp_path / "cut.gguf").write_bytes(gguf.read_bytes()[:-1000])
    to = tmp_path / "out.npz"
    for words, told in (
        (("inspect", tmp_path / "page.gguf"), "page.gguf: is a web page"),
        (("inspect", tmp_path / "cut.gguf"), "cut short"),
        (("convert", tmp_path / "cut.gguf", tmp_path / "a.gguf"), "cut short"),
        (("convert", tmp_path / "page.onnx", tmp_path / "a.npz"), "page.onnx: is a web page"),
        (("match", gguf, tmp_path / "page.gguf", "--ids", "1,2"), "page.gguf: is a web page"),
        (("match", gguf, gguf, "--inputs", tmp_path / "page.npz"), "page.npz: is a web page"),
        (("match", gguf, gguf), "there are no inputs"),
        (("record", gguf, "--ids", "1,2", "-o", to), "no model of PyTorch"),
        (("record", tmp_path / "page.pt2", "--ids", "1,2", "-o", to), "it is no zip archive"),
        (("record", folder, "--inputs", tmp_path / "page.npz", "-o", to), "page.npz: is a web page"),
        (("record", folder, "--ids", "1,2", "-o", tmp_path / "a.txt"), "must end in .npz or .safetensors"),
    ):
        done = run(*words)
        assert done.exit_code == 2, (words, done.output)
        assert "Error: " in done.output, words
        assert told in done.output, (words, done.output)
    assert not to.exists()
    assert run("record", folder, "--inputs", tmp_path / "in.npz", "-o", to).exit_code == 0
    assert run("match", gguf, to, "--tolerance", "0.1").exit_code == 0
