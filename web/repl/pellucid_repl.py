"""The console behind the REPL page: Pyodide's own, with interrupts, `input` and one statement at a time."""

import ast
import asyncio
import base64
import builtins
import codeop
import contextlib
import io
import linecache
import os
import re
import signal
import sys
import time
import traceback
import types
from importlib.abc import MetaPathFinder
from importlib.metadata import version
from typing import Any

import pellucid_completion
from pellucid_page import send
from pyodide import console as pyodide_console
from pyodide.code import CodeRunner
from pyodide.ffi import can_run_sync, run_sync
from pyodide_js import loadPackagesFromImports

_PREFIX = "<python-input-"  # as CPython names what is typed, so that tracebacks look the same
_INDENT = "    "
# What a value may draw, by its kind, and the method that does.
_DRAWN = {
    "mimebundle": "_repr_mimebundle_",
    "text/html": "_repr_html_",
    "image/svg+xml": "_repr_svg_",
    "image/png": "_repr_png_",
    "image/jpeg": "_repr_jpeg_",
}
_MARKUP = ("text/html", "image/svg+xml")


class _TorchFinder(MetaPathFinder):
    """Makes ``import torch`` find Pellucid: what is typed for PyTorch runs. Nothing is imported before."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> Any:
        if fullname != "torch":
            return None
        sys.meta_path.remove(self)
        import pellucid

        return pellucid.compat.install().__spec__


class _Help:
    """The builtin ``help``, with names in bold: what a pager of terminals would overstrike."""

    def __repr__(self) -> str:
        return (
            "Type help(object) for help about object, or object? for its signature and the beginning of it."
        )

    def __call__(self, *args: Any) -> None:
        import pydoc

        pydoc.pager = lambda text, title="": print(re.sub(r"(?:(.)\x08\1)+", _bold, text.rstrip()))
        pydoc.help(*args)


def _bold(overstruck: re.Match[str]) -> str:
    letters = re.sub(r".\x08", "", overstruck[0])
    return f"\x1b[1m{letters}\x1b[0m"


class Console(pyodide_console.Console):
    """One session in the namespace of `__main__`, with a number for each input and the task that runs it."""

    def __init__(self) -> None:
        super().__init__(sys.modules["__main__"].__dict__)
        self._count = 0
        self._task: asyncio.Task | None = None
        self._others: set[asyncio.Task] = set()
        self._is_interrupted = False
        self._is_unheard = False
        self._columns, self._is_fitted = 80, True
        self._answer: asyncio.Future[str] | None = None
        self._parser = codeop.CommandCompiler()
        self._parser.compiler.flags |= ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        builtins.input = self._input
        builtins.help = _Help()
        builtins.display = _display  # pyright: ignore[reportAttributeAccessIssue] as in notebooks
        os.environ["MPLBACKEND"] = "agg"
        signal.signal(signal.SIGINT, self._interrupt)
        sys.meta_path.insert(0, _TorchFinder())

    def missing(self, text: str) -> str | None:
        """What to begin the next line with when a text is not yet a whole input; None when it is one."""
        text, _ = _timed(text)
        try:
            if self._parser(text, symbol="exec") is not None and not _open_block(text):
                return None
        except (SyntaxError, ValueError, OverflowError):
            return None  # running it shows the error
        last = next((line for line in reversed(text.split("\n")) if line.strip()), "")
        indent = last[: len(last) - len(last.lstrip())]
        if last.split("#")[0].rstrip().endswith(":"):
            return indent + _INDENT
        if last.split()[:1] in (["return"], ["pass"], ["break"], ["continue"], ["raise"]):
            return indent.removesuffix(_INDENT)
        return indent

    async def runcode(self, source: str, code: CodeRunner) -> Any:
        """Run a statement, after loading packages of the lock file that it imports."""
        await loadPackagesFromImports(source, messageCallback=_say_nothing)
        return await super().runcode(source, code)

    async def submit(self, text: str) -> str | None:
        """Run an input, unless more lines have to come first: then return what the next line begins with."""
        more = self.missing(text)
        if more is None:
            await self.run_whole(text)
        return more

    async def run_whole(self, text: str) -> None:
        """Run an input that is known to be all there is."""
        send("accepted", text)
        self._others = asyncio.all_tasks()
        self._task = task = asyncio.current_task()
        self._is_interrupted = self._is_unheard = False
        try:
            await self._run(text)
        except SystemExit:
            print("Python goes on here; press Restart Python to begin anew.", file=sys.stderr)
        except SyntaxError as error:
            say = self.formatsyntaxerror if _typed(error) else self.formattraceback
            print(say(error), end="", file=sys.stderr)
        except BaseException as error:
            if self._is_interrupted and isinstance(error, asyncio.CancelledError):
                print("KeyboardInterrupt", file=sys.stderr)
            else:
                _drop_own_frames(error, self._is_interrupted)
                if isinstance(error, ModuleNotFoundError) and error.name:
                    package = error.name.partition(".")[0]
                    error.add_note(
                        f"Packages of pure Python: import micropip; await micropip.install({package!r}). "
                        "Compiled ones are found where the page was opened with ?packages=ADDRESS, a folder "
                        "with Pyodide's own packages."
                    )
                print(self.formattraceback(error), end="", file=sys.stderr)
        finally:
            self._task = None
            # A cancellation that the input did not meet would end the call that ran it.
            while task is not None and task.cancelling():
                task.uncancel()
            sys.stdout.flush()
            sys.stderr.flush()

    def num_frames_to_keep(self, tb: types.TracebackType | None) -> int:
        """All frames from the typed code on; all where showing a value failed without any."""
        return super().num_frames_to_keep(tb) or len(list(traceback.walk_tb(tb)))

    def formattraceback(self, e: BaseException) -> str:
        """As CPython's own prompt prints it: coloured, from the typed code on."""
        super().formattraceback(e)  # what pdb.pm() looks at is set there
        kept = self.num_frames_to_keep(e.__traceback__)
        return "".join(traceback.format_exception(type(e), e, e.__traceback__, -kept, colorize=True))

    def formatsyntaxerror(self, e: BaseException) -> str:
        """The same of an input that is no Python."""
        return "".join(traceback.format_exception_only(type(e), e, colorize=True))

    async def _run(self, text: str) -> None:
        self.filename = f"{_PREFIX}{self._count}>"
        self._count += 1
        text, timed = _timed(text)
        lines = text.split("\n")
        linecache.cache[self.filename] = (len(text), None, [line + "\n" for line in lines], self.filename)
        if asked := re.fullmatch(r"\s*([\w.]+)\?\s*", text):
            print(pellucid_completion.describe(asked[1], pellucid_completion.look(asked[1], self.globals)))
            return
        began = time.perf_counter()
        for first, last in _statements(ast.parse(text, self.filename)):
            # Empty lines before the statement keep the numbers in tracebacks right.
            source = "\n" * (first - 1) + "\n".join(lines[first - 1 : last]) + "\n"
            code = self._compile(source, self.filename, "single")
            if code is not None:
                await self._open()
                self._fit()
                value = await self.runcode(source, code)
                self._fit()  # it may have imported what prints
                sys.displayhook(value)
                _draw(value)
            _draw_figures()
        if timed:
            if "pellucid" in sys.modules:
                await sys.modules["pellucid"].webgpu.synchronize_async()
            print(f"{_duration(time.perf_counter() - began)}, until the device was done")

    async def completions(self, before: str) -> dict[str, Any]:
        """What the text before the cursor may go on with."""
        return pellucid_completion.complete(before, self.globals)

    async def describe(self, expression: str) -> str:
        """Signature and docs of what names and attributes mean; empty where they mean nothing."""
        value = pellucid_completion.look(expression, self.globals)
        return "" if value is None else pellucid_completion.describe(expression, value)

    async def signature(self, before: str) -> str:
        """Signature and first sentence of the call that is open at the end of a text."""
        return pellucid_completion.open_call(before, self.globals, 1)

    async def fit(self, columns: str) -> None:
        """Let lines of what is printed fit a window of so many characters, where that is a narrow one."""
        self._columns = int(columns)
        os.environ["COLUMNS"] = columns
        self._is_fitted = False

    def _fit(self) -> None:
        """Tell Pellucid, and numpy, once they are there."""
        if "pellucid" in sys.modules and not self._is_fitted:
            self._is_fitted = True
            sys.modules["pellucid"].set_printoptions(linewidth=max(20, min(80, self._columns)))
            sys.modules["numpy"].set_printoptions(linewidth=max(20, min(75, self._columns)))

    async def _open(self) -> None:
        """Open the device where Python cannot wait, so that the first op need not."""
        if (pellucid := sys.modules.get("pellucid")) and not can_run_sync():
            with contextlib.suppress(pellucid.errors.DeviceError):  # the op says so
                await pellucid.webgpu.open_async()

    async def versions(self) -> dict[str, str]:
        """What the banner shows; nothing is imported for it."""
        return {"pellucid": version("pellucid"), "python": sys.version.split()[0]}

    async def answer(self, text: str) -> None:
        """Give the line that `input` waits for."""
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(text)

    def cancel(self) -> None:
        """Ctrl-C for an input that only waits: called between other work, while its code is not running."""
        self._is_interrupted = True
        if self._answer is not None:
            self._answer.cancel()
        elif self._task is not None:
            for task in asyncio.all_tasks() - self._others - {asyncio.current_task()}:
                task.cancel()  # what a blocking call of the input waits for
            self._task.cancel()

    def _input(self, prompt: object = "") -> str:
        if not can_run_sync():
            raise OSError(
                "input: this browser cannot suspend Python while you type (no JSPI). "
                "Assign the text to a name instead."
            )
        sys.stdout.flush()
        send("input", str(prompt))
        self._answer = asyncio.get_running_loop().create_future()
        try:
            return run_sync(self._answer)
        finally:
            self._answer = None
            send("answered", None)

    def _interrupt(self, number: int, frame: types.FrameType | None) -> None:
        """Ctrl-C for an input whose code is running: it goes on with a KeyboardInterrupt.

        A task that the input began is cancelled instead: the event loop takes a KeyboardInterrupt of a task
        for its own, and raises it once more where nobody catches it. Where such a task runs no typed code,
        the first Ctrl-C leaves it to `cancel`, for it will soon wait; a second one ends it where it is.
        """
        task = _current_task()
        while frame is not None:
            if frame.f_code.co_filename.startswith(_PREFIX):
                self._is_interrupted = True
                raise KeyboardInterrupt if task in (None, self._task) else asyncio.CancelledError
            frame = frame.f_back
        if self._task is not None and task not in (None, self._task, *self._others):
            if self._is_unheard:
                self._is_interrupted = True
                raise asyncio.CancelledError
            self._is_unheard = True


def _timed(text: str) -> tuple[str, bool]:
    """An input without the ``%time`` before its statements, and whether one was there."""
    lines = text.split("\n")
    found = [i for i, line in enumerate(lines) if re.match(r"%%?time\b", line)]
    for i in found:
        lines[i] = re.sub(r"^%%?time *", "", lines[i])
    return "\n".join(lines), bool(found)


def _duration(seconds: float) -> str:
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _display(*values: Any) -> None:
    """The builtin ``display``, as notebooks have it: values as they draw themselves, or else as text."""
    for value in values:
        if not _draw(value):
            print(value)


def _draw(value: Any) -> bool:
    """Send what a value draws of itself; whether it does. The ways to say so are IPython's."""
    if isinstance(value, type):
        return False
    for kind, name in _DRAWN.items():
        method = getattr(type(value), name, None)
        drawn = method(value) if method is not None else None
        if isinstance(drawn, tuple):
            drawn = drawn[0]  # with metadata
        if isinstance(drawn, dict):
            kind, drawn = next(((k, drawn[k]) for k in _DRAWN if drawn.get(k)), (kind, None))
        if drawn:
            send("picture", drawn if isinstance(drawn, str) and kind in _MARKUP else _image(kind, drawn))
            return True
    return False


def _image(kind: str, data: str | bytes) -> str:
    text = data if isinstance(data, str) else base64.b64encode(data).decode()
    return f'<img alt="" src="data:{kind};base64,{text}">'


def _draw_figures() -> None:
    """Show the figures of matplotlib that a statement left open, and close them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    for number in pyplot.get_fignums() if pyplot else ():
        text = io.StringIO()
        pyplot.figure(number).savefig(text, format="svg")
        pyplot.close(number)
        send("picture", text.getvalue())


def _say_nothing(message: str) -> None:
    """Take a message about packages that load as they should; errors are printed."""


def _open_block(text: str) -> bool:
    """Whether the text ends inside a compound statement, which only an empty line ends."""
    body = ast.parse(text).body
    compound = bool(body) and (hasattr(body[-1], "body") or hasattr(body[-1], "cases"))
    return compound and bool(text.split("\n")[-1].strip())


def _statements(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last line of each statement; statements that share a line go together."""
    spans: list[tuple[int, int]] = []
    for statement in tree.body:
        decorators = getattr(statement, "decorator_list", [])
        first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
        last = statement.end_lineno or first
        if spans and first <= spans[-1][1]:
            first = spans.pop()[0]
        spans.append((first, last))
    return spans


def _typed(error: SyntaxError) -> bool:
    """Whether a syntax error lies in the input itself, and not in something that it imports or evaluates."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename.startswith(_PREFIX):
            return False
        trace = trace.tb_next
    return True


def _current_task() -> asyncio.Task | None:
    """The task that runs, if any does: in a callback of JavaScript there is not even a loop."""
    try:
        return asyncio.current_task()
    except RuntimeError:
        return None


def _drop_own_frames(error: BaseException, is_interrupted: bool) -> None:
    """Take this file's frames off: those that lead to the typed code, and the signal handler's.

    Where the input was interrupted, the cancellations that brought that about are taken off, too.
    """
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    error.__traceback__ = trace
    while trace is not None and trace.tb_next is not None:
        if trace.tb_next.tb_frame.f_code.co_filename == __file__:
            trace.tb_next = None
        trace = trace.tb_next
    while is_interrupted and isinstance(error.__context__, asyncio.CancelledError):
        error.__context__ = error.__context__.__context__
    if error.__context__ is not None:
        _drop_own_frames(error.__context__, is_interrupted)


console = Console()
