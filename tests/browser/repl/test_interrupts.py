"""Ctrl-C in the REPL: loops, printing, tasks and waits end, and the session goes on."""

import pytest
from playwright.sync_api import expect

from browser.repl.page import BOOT, DRAWN


@pytest.mark.parametrize("line", ["print('spam')", "print('spam', end='')", "print('x' * 1_000_000)"])
def test_ctrl_c_ends_endless_printing(repl, line):
    repl.type_block(f"def forever():\n    while True: {line}\n")
    repl.start("forever()")
    repl.page.wait_for_function("document.querySelector('#transcript .fold') !== null")
    assert repl.drawn() < DRAWN
    repl.page.keyboard.press("Control+c")
    repl.ready(10_000)
    assert repl.output().endswith("KeyboardInterrupt\n")
    assert repl.drawn() < DRAWN
    assert repl.type("1 + 1") == "2\n"


def test_top_level_await(repl):
    repl.type("import asyncio")
    assert repl.type("await asyncio.sleep(0.01, 'awaited')") == "'awaited'\n"


def test_a_task_runs_while_the_page_waits_for_input(repl):
    repl.type("import asyncio", "seen = []")
    repl.type("async def count():", "for i in range(3): seen.append(await asyncio.sleep(0.01, i))", "", "")
    repl.type("task = asyncio.create_task(count())")
    assert repl.type("await task; seen") == "[0, 1, 2]\n"


@pytest.mark.parametrize(
    "line",
    ["while True: pass", "await asyncio.sleep(1000)", "run_sync(asyncio.sleep(1000))"],
    ids=["busy", "await", "wait"],
)
def test_ctrl_c_interrupts(repl, line):
    repl.type("import asyncio", "from pyodide.ffi import run_sync", "kept = 1")
    if line.startswith("while"):
        repl.type("def forever():", line, "", "")
        line = "forever()"
    repl.start(line)
    repl.page.keyboard.press("Control+c")
    repl.ready(5_000)
    assert repl.output().endswith("KeyboardInterrupt\n")
    assert "pellucid_repl" not in repl.output()
    assert repl.type("kept") == "1\n"
    assert repl.type("await asyncio.sleep(0.01, 2)") == "2\n"


def test_ctrl_c_while_an_interrupted_input_cleans_up_says_keyboardinterrupt_alone(repl):
    repl.type("import asyncio", "from pyodide.ffi import run_sync")
    repl.type_block(
        "def wait():\n    try:\n        run_sync(asyncio.sleep(1000))\n    finally:\n"
        "        print('cleaning up')\n        while True: pass\n"
    )
    for _ in range(2):
        repl.start("wait()")
        repl.page.keyboard.press("Control+c")
        repl.page.wait_for_function(
            "() => document.getElementById('transcript').lastElementChild.textContent.includes('cleaning up')"
        )
        repl.page.keyboard.press("Control+c")
        repl.ready(5_000)
        assert repl.output().startswith("cleaning up\nTraceback")
        assert repl.output().endswith("while True: pass\n          ^^^^\nKeyboardInterrupt\n")
        assert repl.output().count("KeyboardInterrupt") == 1
        assert "CancelledError" not in repl.output()
    assert repl.type("await asyncio.sleep(0.01, 2)") == "2\n"


def test_ctrl_c_cancels_a_task_of_the_input(repl):
    repl.type("import asyncio")
    repl.type_block("async def forever():\n    while True: pass\n")
    repl.start("await asyncio.create_task(forever())")
    repl.page.keyboard.press("Control+c")
    repl.ready(5_000)
    assert repl.output() == "KeyboardInterrupt\n"  # and no error of the page


def test_a_second_ctrl_c_cancels_a_task_that_runs_no_typed_code(repl):
    repl.type("import asyncio", "names = {}")
    repl.type(r"exec(compile('async def forever():\n while True: pass', 'library.py', 'exec'), names)")
    repl.start("await asyncio.create_task(names['forever']())")
    for _ in range(2):
        repl.page.keyboard.press("Control+c")
        repl.page.wait_for_timeout(500)
    repl.ready(5_000)
    assert repl.output() == "KeyboardInterrupt\n"
    assert repl.type("await asyncio.sleep(0.01, 2)") == "2\n"


def test_a_task_that_the_input_cancelled_is_no_ctrl_c(repl):
    repl.type("import asyncio", "task = asyncio.create_task(asyncio.sleep(10))", "asked = task.cancel()")
    assert repl.type("await task").endswith("asyncio.exceptions.CancelledError\n")
    assert "KeyboardInterrupt" not in repl.output()


@pytest.mark.parametrize("wait", ["x.sum().item()", "torch.webgpu.synchronize()"])
@pytest.mark.parametrize("long", [False, True], ids=["many", "long"])
def test_ctrl_c_interrupts_waits_for_the_device(repl, wait, long):
    repl.type("import pellucid as torch", "x = torch.ones(512, 512) * 1e-3", "torch.webgpu.synchronize()")
    work = "for _ in range(8): y = x @ x\n        " if long else ""
    repl.type_block(f"def forever():\n    while True:\n        {work}{wait}\n")
    repl.start("forever()")
    repl.page.wait_for_timeout(200)
    repl.page.keyboard.press("Control+c")
    repl.ready(30_000)
    assert "KeyboardInterrupt\n" in repl.output()
    assert repl.type("torch.ones(2).sum().item()") == "2.0\n"


def test_another_task_runs_ops_while_reads_wait(repl):
    repl.type("import asyncio, pellucid as torch", "seen = []")
    repl.type_block(
        "async def other():\n"
        "    for i in range(5):\n"
        "        seen.append((torch.ones(3) * i).sum().item())\n"
        "        await asyncio.sleep(0)\n"
    )
    repl.type("task = asyncio.create_task(other())")
    assert repl.type("[(torch.arange(4.) + i).sum().item() for i in range(4)]") == "[6.0, 10.0, 14.0, 18.0]\n"
    assert repl.type("await task; seen") == "[0.0, 3.0, 6.0, 9.0, 12.0]\n"


def test_a_read_inside_a_javascript_callback_names_the_twin(repl):
    repl.type("import js, pellucid as torch", "x = torch.ones(2) + 1", "x.sum()")
    printed = repl.type("js.Array.of(1).forEach(lambda *_: x.sum().item())")
    assert "DeviceError" in printed
    assert "_async" in printed.splitlines()[-1]
    assert repl.type("x.sum().item()") == "4.0\n"


def test_without_isolation_waiting_is_interrupted_and_computing_needs_a_restart(plain_repl):
    repl = plain_repl
    expect(repl.notes).to_contain_text("Cross-Origin-Opener-Policy")
    repl.type("import asyncio")
    repl.start("await asyncio.sleep(1000)")
    repl.page.keyboard.press("Control+c")
    repl.ready(5_000)
    repl.type("def forever():", "while True: pass", "", "")
    repl.start("forever()")
    repl.page.keyboard.press("Control+c")
    expect(repl.status).to_have_text(
        "Only waiting can be interrupted on this page. To end a computation, press Restart Python.",
        timeout=1_000,
    )
    repl.restart()
    repl.ready(BOOT)
    assert repl.type("1 + 1") == "2\n"


def test_without_isolation_all_that_is_printed_is_shown_in_order(plain_repl):
    repl = plain_repl
    repl.type("import sys, time")
    repl.fill("for i in range(20_000): print(i)\nprint('end', file=sys.stderr); 'value'")
    repl.editor.press("Control+Enter")
    repl.holds("")
    repl.ready()
    assert repl.output().endswith("19998\n19999\nend\n'value'\n")
    lines = repl.saved().split("\n")
    assert lines[2:] == [*map(str, range(20_000)), "end", "'value'", ""]
    repl.type_block("def forever():\n    while True: print('spam')\n")
    repl.start("forever()")
    repl.page.wait_for_function("document.querySelectorAll('#transcript .fold').length === 2")
    repl.restart()
    assert repl.drawn() < 2 * DRAWN
    repl.ready(BOOT)
    assert repl.type("1 + 1") == "2\n"
