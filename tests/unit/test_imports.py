"""Imports go one way: a module imports its own room and those before it in `ROOMS`.

Every import counts, also those in functions and those for type checkers: whoever reads a file has to know
what stands behind its names. Rooms are single modules where a folder holds what is needed early and what is
made of it: tensors are a class over memory first, and ops give that class its methods later.
"""

import ast
from functools import cache

from paths import ROOT

PACKAGE = ROOT / "pkg" / "pellucid"
# Modules of the largest circles: the stream with the storages and reads that it makes; the tokenizer with its
# parts.
LARGEST_CIRCLE = 3

# From low to high. A module belongs to the longest name that is its own or its folder's.
ROOMS = (
    ("errors",),
    # What a tensor is apart from its memory. Here a device is no more than its name.
    (
        "tensors.absent",
        "tensors.dtypes",
        "tensors.shape",
        "tensors.meta",
        "tensors.formats",
        "tensors.limits",
        "device.__init__",
    ),
    # Memory, the stream of commands, the hosts; kernels as text.
    ("device", "op.kernel"),
    # The class of tensors, and what places in the graph are, for a tensor has one.
    (
        "autograd.edges",
        "autograd.grad_mode",
        "autograd.handle",
        "tensors.reading",
        "tensors.portable",
        "tensors.tensor",
    ),
    # What a declaration says, and how a call of it becomes launches.
    ("op",),
    # The graph records calls. It knows what schemas say; to compute it asks tensors, or the table of ops.
    ("autograd",),
    # `@op` writes for each op the function that is called and the one that records.
    ("op.declaration", "op.families", "op.inplace"),
    # What was measured chooses kernels, so ops ask for it; the measuring itself calls ops.
    ("op.kernel.autotune.deterministic", "op.kernel.autotune.measured"),
    # Tensors from data. A weight of several buffers, which ops take apart.
    ("tensors.construct", "quant"),
    ("ops",),
    # Tensors get their methods. Blocks of files become weights by ops.
    (
        "tensors.html",
        "tensors.dispatch",
        "tensors.indexing",
        "tensors.overrides",
        "tensors.printing",
        "tensors.queries",
        "tensors.typed",
        "tensors.methods",
        "quant.weight",
        "quant.quality",
    ),
    # Commands of a window are joined before it is submitted.
    ("op.fusion",),
    ("op.kernel.autotune.candidates", "op.kernel.autotune.tune", "device.webgpu"),
    ("nn", "optim"),
    ("distributions",),
    # A graph in ATen also names losses and layers.
    ("ops.aten",),
    ("profiler",),
    # Captured functions find modules and optimizers among what they use.
    ("op.jit",),
    ("weights",),
    ("text", "models.generate", "lens"),
    ("models",),
    # Simulation is a program of all that is below.
    ("physics", "grid"),
    # What stands around programs may use all of it.
    ("utils",),
    # Training takes data, files and checkpoints of activations from there.
    ("train",),
    # The checked mode looks at all of it.
    ("profiler.check",),
    ("__init__",),
)


@cache
def imports() -> dict[str, set[str]]:
    """The modules of the package that each of its modules imports; packages are named by their __init__."""
    files = {".".join(p.relative_to(PACKAGE).with_suffix("").parts): p for p in PACKAGE.rglob("*.py")}

    def module(parts: list[str]) -> str | None:
        return next((n for n in (".".join(parts), ".".join([*parts, "__init__"])) if n in files), None)

    found: dict[str, set[str]] = {}
    for name, path in files.items():
        found[name] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom):
                continue
            base = node.module.split(".") if node.module else []
            if node.level:
                base = name.split(".")[: -node.level] + base
            elif base.pop(0) != PACKAGE.name:
                continue
            for alias in node.names:
                # `from . import x` is x if that is a module, else a name of the package.
                target = module([*base, alias.name]) or module(base)
                if target is not None and target not in (name, "__init__"):
                    found[name].add(target)
    return found


def room(module: str) -> int:
    """The number of a module's room."""
    places = {name: k for k, names in enumerate(ROOMS) for name in names}
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        if (k := places.get(".".join(parts[:length]))) is not None:
            return k
    raise AssertionError(f"{module} is in no room")


def circles() -> list[set[str]]:
    """Modules that import each other, by every way: those that each reaches and that reach it."""
    reached: dict[str, set[str]] = {}
    for module in imports():
        seen, left = set(), [module]
        while left:
            new = imports()[left.pop()] - seen
            seen |= new
            left += new
        reached[module] = seen
    return [{n for n in seen if m in reached[n]} for m, seen in reached.items() if m in seen]


def test_no_module_imports_a_room_above_its_own():
    upward = [f"{m} imports {n}" for m, names in imports().items() for n in names if room(n) > room(m)]
    assert not upward


def test_circles_are_small():
    assert max(map(len, circles()), default=0) <= LARGEST_CIRCLE


def test_the_table_of_rooms_names_modules_that_exist():
    # A module that moved would count as its folder's. Folders of the package are found by `room`.
    for name in (name for names in ROOMS for name in names if "." in name):
        assert any(m == name or m.startswith(f"{name}.") for m in imports()), name
