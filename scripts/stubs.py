"""Type stubs of what is attached or exported at run time: `pellucid`, its `Tensor` and `nn.functional`.

Signatures of ops are those of their declarations, so that an editor completes ``x.sum(dim=1)`` and a type
checker refuses ``x.sum(dims=1)``.
"""

import ast
import inspect
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from paths import ROOT

PACKAGE = ROOT / "pkg" / "pellucid"
# Names of `pellucid` and of Tensor that hide those of Python.
HIDDEN = ("bool", "complex", "float", "int")
# The words about memory that functions which make tensors take, with their types.
LAID = {
    "layout": "_Layout | None",
    "memory_format": "_MemoryFormat | None",
    "pin_memory": "bool | None",
}


class Stub:
    """The text of one stub: its lines, and the imports that their annotations need."""

    def __init__(self, path: str, what: str) -> None:
        self.path = PACKAGE / path
        self.lines: list[str] = []
        self.imports: set[str] = set()
        self.known: set[str] = set()
        self.what = what

    def annotation(self, text: str, scope: dict[str, Any], *, given: bool = False) -> str:
        """An annotation as the stub writes it.

        Args:
            text: as in the source.
            scope: what the source's names mean.
            given: of a parameter: lists are taken where a tuple is named.
        """
        if given:
            text = re.sub(r"tuple\[([^\[\]]+), \.\.\.\]", r"Sequence[\1]", text)
            text = re.sub(r"\blist\[", "Sequence[", text)
        for name in set(re.findall(r"(?<![\w.])[A-Za-z_]\w*", text)) - {"None"}:
            if name in HIDDEN:
                self.imports.add(f"from builtins import {name} as _{name}")
            elif name == "Sequence":
                self.imports.add("from collections.abc import Sequence")
            elif name in scope and name not in self.known:
                found = scope[name]
                if isinstance(found, ModuleType):
                    alias = "" if found.__name__ == name else f" as {name}"
                    self.imports.add(f"import {found.__name__}{alias}")
                else:
                    own = getattr(found, "__name__", name)
                    alias = "" if own == name else f" as {name}"
                    self.imports.add(f"from {self.module(found.__module__)} import {own}{alias}")
        return re.sub(rf"(?<![\w.])({'|'.join(HIDDEN)})\b", r"_\1", text)

    def module(self, name: str) -> str:
        """A module as this stub imports it: those of the package by relative paths."""
        if not name.startswith("pellucid."):
            return name
        here, there = self.path.relative_to(PACKAGE).parent.parts, name.split(".")[1:]
        shared = here == tuple(there[: len(here)])
        return "." + ".".join(there[len(here) :]) if shared else "." * (len(here) + 1) + ".".join(there)

    def function(self, name: str, call: Callable, *, method: bool = False, result: str | None = None) -> None:
        """A function or method with the signature and the first sentences of its declaration."""
        from pellucid.op.arguments import aliases_of, laid_words
        from pellucid.tensors import formats

        # By names that no attribute of Tensor hides.
        scope_of_formats = {"_Layout": formats.layout, "_MemoryFormat": formats.memory_format}
        signature = inspect.signature(call)
        scope = inspect.unwrap(call).__globals__
        parameters = list(signature.parameters.values())
        code = call.__code__
        taken = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if "out" in taken and "out" not in signature.parameters and not result:
            out = inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None)
            parameters.append(out.replace(annotation="Tensor | None"))
        # What `op.public` takes besides for whatever makes tensors.
        for word in sorted(laid_words({*signature.parameters})) if hasattr(call, "declared") else ():
            also = inspect.Parameter(word, inspect.Parameter.KEYWORD_ONLY, default=None)
            parameters.append(also.replace(annotation=LAID[word]))
            scope = {**scope, **scope_of_formats}
        # numpy's names, which stand for what is then not given.
        aliases = aliases_of(name, (p.name for p in parameters))
        for alias, known in aliases.items():
            same = signature.parameters[known]
            also = same.replace(name=alias, kind=same.KEYWORD_ONLY, default=...)
            parameters.append(also)
        begin = next((k for k, p in enumerate(parameters) if p.name in aliases.values()), len(parameters))
        words: list[str] = []
        star = False
        for k, p in enumerate(parameters):
            if p.kind is p.KEYWORD_ONLY and not star:
                words.append("*")
            star |= p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
            if k == 0 and method:
                words.append("self")
                continue
            word = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "") + p.name
            annotated = p.annotation is not p.empty
            if annotated:
                word += f": {self.annotation(p.annotation, scope, given=True)}"
            if p.kind is p.VAR_POSITIONAL:
                # What is also taken by name (`arguments.by_name`) is behind what is given by place.
                code = inspect.unwrap(call).__code__
                own = code.co_varnames[code.co_argcount + code.co_kwonlyargcount]
                if own == "given" != p.name:
                    words += [f"*{own}", f"{p.name}=None"]
                    continue
            is_late = k >= begin and not star and p.kind is not p.VAR_POSITIONAL
            if p.default is p.empty and is_late:
                word += " = ..." if annotated else "=..."
            if p.default is not p.empty:
                plain = isinstance(p.default, (bool, int, float, str, tuple, type(None)))
                word += (" = " if annotated else "=") + (repr(p.default) if plain else "...")
            words.append(word)
        returned = result or signature.return_annotation
        arrow = f" -> {self.annotation(returned, scope)}" if returned is not signature.empty else ""
        self.define(f"def {name}({', '.join(words)}){arrow}:", call.__doc__, method)

    def define(self, line: str, doc: str | None, indented: bool, decorators: Iterable[str] = ()) -> None:
        first = inspect.cleandoc(doc or "").split("\n\n")[0]
        body = textwrap.indent('"""' + "\n".join(textwrap.wrap(first, 96)) + '"""', "    ") if first else ""
        text = "\n".join([*decorators, f"{line} ..." if not first else f"{line}\n{body}"])
        self.lines.append(textwrap.indent(text, "    ") if indented else text)

    def members(self, module: ModuleType, name: str) -> None:
        """What the body of a class defines in the source."""
        tree = ast.parse(inspect.getsource(module))
        body = next(n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == name).body
        scope = dict(vars(module))
        annotated: dict[str, str] = {}
        for node in body:
            if isinstance(node, ast.AnnAssign):
                text = self.annotation(ast.unparse(node.annotation), scope)
                annotated[ast.unparse(node.target)] = text
                self.lines.append(f"    {ast.unparse(node.target)}: {text}")
            elif isinstance(node, ast.Assign):
                (target,), value = node.targets, node.value
                if isinstance(value, ast.Constant):
                    kind = self.annotation(type(value.value).__name__, {})
                    self.lines.append(f"    {ast.unparse(target)}: {kind}")
                elif isinstance(value, ast.Call):  # property(attrgetter("_name"), ...)
                    private = re.findall(r"attrgetter\('(\w+)'\)", ast.unparse(value))[0]
                    self.lines.append(f"    {ast.unparse(target)}: {annotated[private]}")
                else:
                    self.lines.append(f"    {ast.unparse(node)}")
            elif isinstance(node, ast.FunctionDef):
                for a in ast.walk(node.args):
                    if isinstance(a, ast.arg) and a.annotation is not None:
                        text = self.annotation(ast.unparse(a.annotation), scope, given=True)
                        a.annotation = ast.parse(text, mode="eval").body
                arrow = ""
                if node.returns is not None:
                    arrow = f" -> {self.annotation(ast.unparse(node.returns), scope)}"
                decorators = [f"@{ast.unparse(d)}" for d in node.decorator_list]
                line = f"def {node.name}({ast.unparse(node.args)}){arrow}:"
                self.define(line, ast.get_docstring(node), True, decorators)

    def text(self) -> str:
        head = [f'"""{self.what}', "", 'Written by `scripts/reference`; do not edit.\n"""', ""]
        text = "\n".join([*head, *sorted(self.imports), "", *self.lines, ""])
        for command in (["check", "--fix-only", "--quiet", "--select", "I"], ["format"]):
            words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(self.path), "-"]
            text = subprocess.run(words, input=text, capture_output=True, text=True, check=True).stdout
        return text


def tensor() -> Stub:
    from pellucid.op.public import IN_PLACE, METHODS
    from pellucid.tensors import methods
    from pellucid.tensors import tensor as source

    stub = Stub("tensors/tensor.pyi", "Tensor with the methods and operators that `methods` attaches.")
    stub.known.add("Tensor")
    # A comparison of tensors is a tensor.
    stub.lines.append("# pyright: reportIncompatibleMethodOverride=false")
    bases = ", ".join(stub.annotation(b.__name__, dict(vars(source))) for b in source.Tensor.__bases__)
    stub.lines += [f"class Tensor({bases}):", f'    """{inspect.getdoc(source.Tensor)}"""']
    stub.members(source, "Tensor")
    stub.members(methods, "_Methods")
    for name, function in sorted(METHODS.items()):
        stub.function(name, function, method=True)
    for name, op in sorted(IN_PLACE.items()):
        stub.function(name, op.call, method=True, result="Tensor")
    stub.imports.add("from typing import Any")
    for name, function in methods.OPERATORS.items():
        unary = len(inspect.signature(function).parameters) == 1
        stub.lines.append(f"    def {name}(self{'' if unary else ', other: Any'}) -> Tensor: ...")
    return stub


def exported(path: str, what: str, place: str) -> Stub:
    import_module("pellucid.nn")
    from pellucid.op.public import EXPORTS

    stub = Stub(path, what)
    stub.lines.append("__all__: list[str]")
    for name, function in sorted(EXPORTS[place].items()):
        stub.function(name, function)
    return stub


def package() -> Stub:
    import pellucid
    from pellucid.op.public import EXPORTS
    from pellucid.tensors import methods
    from pellucid.tensors.typed import TYPES

    stub = Stub("__init__.pyi", "The PyTorch API on WebGPU.")
    scope = {"DType": pellucid.dtype}
    lazy: dict[str, str] = pellucid._LAZY  # pyright: ignore[reportAttributeAccessIssue]
    for node in ast.parse(inspect.getsource(pellucid)).body:
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                name = alias.asname or alias.name
                if name.startswith("_"):
                    continue
                if name == alias.name:
                    stub.known.add(name)
                    stub.imports.add(f"from .{node.module or ''} import {name} as {name}")
                else:
                    stub.imports.add(f"from .{node.module} import {alias.name}")
                    stub.lines.append(f"{name} = {alias.name}")
        elif isinstance(node, ast.Assign) and (name := ast.unparse(node.targets[0])) != "_LAZY":
            kind = type(getattr(pellucid, name)).__name__.replace("NoneType", "None")
            stub.lines.append(f"{name}: {stub.annotation(kind, scope)}")
    for name, room in lazy.items():
        parent, _, last = room.rpartition(".")
        stub.imports.add(f"from .{parent if last == name else room} import {name} as {name}")
    stub.lines += [f"{name} = Tensor" for name in TYPES]
    for name, function in sorted(EXPORTS["torch"].items()):
        stub.function(name, function)
    for name in sorted(methods.functions_in_place().keys() - EXPORTS["torch"].keys()):
        stub.lines.append(f"{name} = Tensor.{name}")
    return stub


def models() -> Stub:
    module = import_module("pellucid.models")
    stub = Stub("models/__init__.pyi", "The model zoo.")
    for name, found in vars(module).items():
        if inspect.isclass(found) and not name.startswith("_"):
            stub.imports.add(f"from {stub.module(found.__module__)} import {name} as {name}")
    registries = ("GGUF_ARCHITECTURES", "MODEL_TYPES")
    stub.imports |= {f"from .language_model import {name} as {name}" for name in registries}
    stub.imports.add("from .pretrained import REGISTRIES as REGISTRIES")
    return stub


def texts() -> dict[Path, str]:
    """The stubs by their files."""
    functional = exported("nn/functional.pyi", "What layers compute, as functions.", "nn.functional")
    namespaces = [
        exported(f"ops/namespaces/{name.replace('.', '/')}.pyi", f"Functions of `pellucid.{name}`.", name)
        for name in ("special", "linalg", "fft", "signal.windows")
    ]
    return {stub.path: stub.text() for stub in (tensor(), functional, *namespaces, package(), models())}
