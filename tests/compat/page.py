r"""The programs of `programs.py` in the page, with the packages that are given:

    scripts/browser tests/compat/page.py --packages numpy,pellucid,micropip,packaging --mount FOLDER \
        -- FILE... NAME...

FOLDER has the FILEs, pure Python wheels and archives (.zip) of the Python files of packages that have no such
wheel, and what `programs.py torch FOLDER/x NAME...` wrote.
"""

import contextlib
import io
import os
import sys
import warnings
import zipfile
from pathlib import Path

import micropip
import programs
from pyodide.http import pyfetch

# What is compiled, or works by the network: others import it, no program here calls it. By name: version and
# modules.
STAND_INS = {
    "regex": ("2026.1.1", ""),
    "tokenizers": ("0.23.3", "decoders models normalizers pre_tokenizers processors trainers"),
    "safetensors": ("0.8.0", "torch numpy"),
    "pillow": (
        "12.0.0",
        "Image ImageColor ImageDraw ImageFont ImageEnhance ImageOps ImageFilter ImageChops ExifTags",
    ),
    "matplotlib": ("3.10.0", "colors collections image figure axes pyplot patches cm ticker"),
    "psutil": ("7.0.0", ""),
    "mpl_toolkits": ("3.10.0", "axes_grid1"),
    "httpx2_jsfetch": ("1.0.0", ""),
    "lzma": ("1.0.0", ""),
    "truststore": ("1.0.0", ""),
    "ssl": ("1.0.0", ""),
    "sqlite3": ("1.0.0", ""),
    "termios": ("1.0.0", ""),
    "tty": ("1.0.0", ""),
}
MODULES = {"pillow": "PIL"}
REGEX = "from re import *\n"
CLASSES = """
class _Named(type):
    def __getattr__(cls, name):
        return __getattr__(name)

__version__ = {version!r}

def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return _Named(name, (), {{}})
"""


async def fetched(name: str) -> bytes:
    return await (await pyfetch(f"{os.environ['PELLUCID_MOUNT_URL']}{name}")).bytes()


async def install(names: list[str]) -> None:
    """Install wheels and archives, each as it is."""
    for name, (version, submodules) in STAND_INS.items():
        module = MODULES.get(name, name)
        source = REGEX if name == "regex" else CLASSES.format(version=version)
        made = {module: source} | {f"{module}.{sub}": source for sub in submodules.split()}
        micropip.add_mock_package(name, version, modules=made)
    for name in names:
        if name.endswith(".whl"):
            Path(f"/tmp/{name}").write_bytes(await fetched(name))
            await micropip.install(f"emfs:/tmp/{name}", deps=False)
        elif name.endswith(".zip"):
            with zipfile.ZipFile(io.BytesIO(await fetched(name))) as files:
                files.extractall("/tmp/plain")
            sys.path.append("/tmp/plain")


async def main(*words: str) -> None:
    warnings.simplefilter("ignore")
    names = [word for word in words if not word.endswith((".whl", ".zip"))]
    await install([word for word in words if word not in names])
    import pellucid

    torch = pellucid.compat.install()
    for name in names:
        for part in ("weights", "torch"):
            Path(f"/tmp/{name}.{part}.npz").write_bytes(await fetched(f"{name}.{part}.npz"))
        with contextlib.redirect_stdout(io.StringIO()):
            wrong = programs.run(torch, name, Path("/tmp/x"), False)
        print(f"{name}: {wrong or format(programs.difference(name, Path('/tmp/x')), '.1e')}", flush=True)


await main(*sys.argv[1:])
