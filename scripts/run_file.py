"""Runs a Python file as a program, top-level await allowed; the same code on CPython and inside Pyodide."""

import ast
import asyncio
import inspect
import sys
import traceback
import types
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any


def _load(path: str, arguments: Sequence[str]) -> tuple[types.CodeType, types.ModuleType]:
    source = Path(path).read_text(encoding="utf-8")
    code = compile(source, path, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    module = types.ModuleType("__main__")
    module.__file__ = path
    sys.modules["__main__"] = module
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(Path(path).parent))
    return code, module


def _status(error: BaseException, path: str) -> int:
    """What the interpreter would exit with after this exception, having printed what it prints."""
    if isinstance(error, SystemExit):
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return 1
    trace = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next  # the reader wants the file's frames, not those that started it
    traceback.print_exception(type(error), error, trace)
    return 130 if isinstance(error, KeyboardInterrupt) else 1


def _flush(status: int) -> int:
    sys.stdout.flush()
    sys.stderr.flush()
    return status


async def execute(path: str, arguments: Sequence[str] = ()) -> int:
    """Run the file in the running event loop and return its exit status."""
    try:
        code, module = _load(path, arguments)
        result = eval(code, module.__dict__)
        if inspect.iscoroutine(result):
            await result
    except BaseException as error:
        return _flush(_status(error, path))
    return _flush(0)


def execute_blocking(path: str, arguments: Sequence[str] = ()) -> int:
    """Run the file and return its exit status; an event loop is started only for a file that awaits."""
    try:
        code, module = _load(path, arguments)
        result: Coroutine[Any, Any, None] | None = eval(code, module.__dict__)
        if inspect.iscoroutine(result):
            asyncio.run(result)
    except BaseException as error:
        return _flush(_status(error, path))
    return _flush(0)


if __name__ == "__main__":
    sys.exit(execute_blocking(sys.argv[1], sys.argv[2:]))
