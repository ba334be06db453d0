"""The REPL page, by keyboard: what a person types, and what the page then shows."""

import doctest
import re

import pytest
from playwright.sync_api import Page, expect

from paths import ROOT, SITE, TEST_SITE
from static_server import StaticServer

READY, RUNNING = "body[data-state=ready]", "body[data-state=running]"
BOOT = 60_000  # milliseconds


class Repl:
    """The page, with the verbs of this file's tests."""

    def __init__(self, page: Page, server):
        self.page, self.server = page, server
        self.editor = page.get_by_role("textbox", name="Python input")
        self.notes = page.locator("#notes")
        self.options = page.locator("#completions").get_by_role("option")
        self.status = page.get_by_role("status")

    def open(self) -> "Repl":
        self.page.goto(self.server.url + "web/repl/")
        self.ready(BOOT)
        return self

    def ready(self, timeout: float = 30_000) -> None:
        self.page.wait_for_selector(READY, timeout=timeout)

    def start(self, line: str) -> None:
        """Type a line that goes on running."""
        self.editor.press_sequentially(line)
        self.editor.press("Enter")
        self.page.wait_for_selector(RUNNING)
        expect(self.editor).to_have_value("")  # it was accepted

    def type(self, *lines: str) -> str:
        """Type lines, Enter after each; what was printed for the last input."""
        for line in lines:
            self.editor.press_sequentially(line)
            self.editor.press("Enter")
            self.ready()
        return self.output()

    def type_block(self, source: str) -> str:
        """Type a statement, indented as it is written, and the empty line that ends a block."""
        first, *rest = source.rstrip("\n").split("\n")
        self.type(first)
        for line in [*rest, ""] if rest else []:
            self.editor.press("Shift+Home")  # instead of the indentation that the editor proposes
            self.editor.press("Delete")
            self.type(line)
        return self.output()

    def restart(self) -> None:
        """Press Restart Python, and answer its question."""
        self.page.get_by_role("button", name="Restart Python").click()
        self.page.get_by_role("button", name="Restart", exact=True).click()

    def paste(self, text: str) -> None:
        self.editor.evaluate(
            """(editor, text) => {
                const clipboardData = new DataTransfer();
                clipboardData.setData("text/plain", text);
                const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
                editor.dispatchEvent(event);
            }""",
            text,
        )

    def output(self) -> str:
        """What was printed after the last input that was run."""
        return self.page.evaluate(
            """() => {
                const blocks = [...document.getElementById("transcript").children];
                const last = blocks.findLastIndex((block) => block.className === "input");
                return blocks.slice(last + 1).map((block) => block.textContent).join("");
            }"""
        )

    def inputs(self) -> list[str]:
        return self.page.locator("#transcript .input").all_text_contents()


@pytest.fixture(scope="module")
def session(browser):
    """One running page for the tests that need no fresh one."""
    with StaticServer(SITE) as server:
        context = browser.new_context()
        page = context.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        yield Repl(page, server).open()
        context.close()
    assert not errors


@pytest.fixture
def repl(session):
    """The running page, with an empty transcript and an empty line."""
    session.ready()
    session.editor.fill("")
    session.page.get_by_role("button", name="Clear").click()
    return session


@pytest.fixture
def fresh_repl(page, site_server):
    """A page of its own."""
    return Repl(page, site_server).open()


@pytest.fixture
def plain_repl(page, plain_server):
    return Repl(page, plain_server).open()


def test_values_are_shown_as_python_shows_them(repl):
    assert repl.type("1 + 1") == "2\n"
    assert repl.type("_ * 2") == "4\n"
    assert repl.type("None") == ""
    assert repl.type("x = 'é日'") == ""
    assert repl.type("x") == "'é日'\n"
    assert repl.type("print(x, end='')") == "é日"
    assert repl.type("1; 2") == "1\n2\n"
    assert repl.inputs()[0] == ">>> 1 + 1"


def test_readme_example(fresh_repl):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    marked = re.search(r"<!-- repl -->(.*?)<!-- /repl -->", text, re.DOTALL)
    assert marked, "README.md has no example between <!-- repl --> and <!-- /repl -->"
    examples = doctest.DocTestParser().get_examples(re.sub(r"^```.*$", "", marked[1], flags=re.MULTILINE))
    assert len(examples) >= 5
    checker = doctest.OutputChecker()
    for example in examples:
        printed = fresh_repl.type_block(example.source)
        assert checker.check_output(example.want, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), (
            f"{example.source}expected:\n{example.want}printed:\n{printed}"
        )


def test_an_exception_shows_its_traceback_and_the_session_goes_on(repl):
    repl.type("def half(x):", "return x / 0", "")
    assert re.sub(r"input-\d+", "input-N", repl.type("half(1)")) == (
        "Traceback (most recent call last):\n"
        '  File "<python-input-N>", line 1, in <module>\n'
        "    half(1)\n"
        "    ~~~~^^^\n"
        '  File "<python-input-N>", line 2, in half\n'
        "    return x / 0\n"
        "           ~~^~~\n"
        "ZeroDivisionError: division by zero\n"
    )
    assert repl.page.locator("#transcript .stderr").count() == 1
    assert repl.type("half.__name__") == "'half'\n"
    assert "SyntaxError: invalid syntax" in repl.type("1 +* 2")
    assert "SystemExit" not in repl.type("exit()")
    assert repl.type("'still here'") == "'still here'\n"


def test_a_value_that_cannot_be_shown_says_where(repl):
    repl.type("class Opaque:", "def __repr__(self): raise ValueError('opaque')", "", "")
    assert re.fullmatch(
        r'Traceback \(most recent call last\):\n  File "<python-input-\d+>", line 2, in __repr__\n'
        r"[^\n]*raise ValueError.*\n(.*\n)?ValueError: opaque\n",
        repl.type("Opaque()"),
    )
    assert repl.type("1") == "1\n"


def test_a_block_is_indented_and_ends_with_an_empty_line(repl):
    repl.editor.press_sequentially("def double(x):")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("def double(x):\n    ")
    repl.editor.press_sequentially("if x:")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("def double(x):\n    if x:\n        ")
    repl.editor.press_sequentially("return x * 2")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("def double(x):\n    if x:\n        return x * 2\n    ")
    repl.editor.press("Backspace")
    expect(repl.editor).to_have_value("def double(x):\n    if x:\n        return x * 2\n")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("")
    assert repl.type("double(21)") == "42\n"
    assert repl.inputs()[0].split("\n")[:2] == [">>> def double(x):", "...     if x:"]


def test_pasted_statements_run_in_order(repl):
    repl.editor.fill("def inc(n):\n    return n + 1\ninc(1)\nfor i in range(2):\n    print(i)\n")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    assert repl.output() == "2\n0\n1\n"


def test_an_example_is_pasted_without_its_prompts_and_outputs(repl):
    repl.paste(">>> def inc(n):\n...     return n + 1\n...\n>>> inc(1)\n2\n>>> inc(2)\n3\n")
    expect(repl.editor).to_have_value("def inc(n):\n    return n + 1\n\ninc(1)\ninc(2)")
    repl.editor.press("Control+Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    assert repl.output() == "2\n3\n"


def test_lines_typed_while_python_is_busy_run_afterwards(repl):
    repl.start("import time; time.sleep(1.5)")
    repl.editor.press_sequentially("a = 20")
    repl.editor.press("Enter")
    repl.editor.press_sequentially("for i in range(2): a += 1")
    repl.editor.press("Enter")
    repl.editor.press("Enter")
    repl.editor.press_sequentially("a")
    repl.editor.press("Enter")
    repl.editor.press_sequentially("unfinished")
    expect(repl.page.locator("#transcript .input").last).to_have_text(">>> a")
    repl.ready()
    assert repl.output() == "22\n"
    expect(repl.editor).to_have_value("unfinished")


DRAWN = 250_000  # characters of one input's output that may be on the page at a time, with room to spare


def drawn_characters(page: Page) -> int:
    return page.evaluate("document.getElementById('transcript').textContent.length")


def saved(repl: Repl) -> str:
    with repl.page.expect_download() as download:
        repl.page.get_by_role("button", name="Save all").last.click()
    return download.value.path().read_text(encoding="utf-8")


def test_long_output_is_folded_and_all_of_it_can_be_drawn_and_saved(repl):
    repl.editor.fill("for i in range(30_000): print(i, 'lines')")
    repl.editor.press("Control+Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    lines = [f"{i} lines" for i in range(30_000)]
    shown = repl.output().split("\n")
    assert shown[:100] == lines[:100]
    assert shown[-101:] == [*lines[-100:], ""]
    assert drawn_characters(repl.page) < DRAWN
    fold = repl.page.locator("#transcript .fold")
    found = re.search(r"([\d,]+) lines \(([\d,]+) characters\) folded away", fold.inner_text())
    assert found
    hidden = int(found[1].replace(",", ""))
    drawn = "".join(repl.page.locator("#transcript .stdout").all_text_contents())
    assert drawn.count("\n") == 30_000 - hidden
    assert saved(repl).split("\n", 1)[1] == "\n".join([*lines, ""])
    while fold.count():
        fold.get_by_role("button", name="Show more").click()
        repl.page.wait_for_timeout(50)
    assert repl.output() == "\n".join([*lines, ""])


def test_a_long_value_is_folded(repl):
    shown = repl.type("'xé' * 1_000_000")
    assert shown.startswith("'xéxé")
    assert shown.endswith("éxé'\n")
    assert "characters folded away" in shown
    assert drawn_characters(repl.page) < DRAWN
    assert saved(repl).split("\n", 1)[1] == "'" + "xé" * 1_000_000 + "'\n"


@pytest.mark.parametrize("line", ["print('spam')", "print('spam', end='')", "print('x' * 1_000_000)"])
def test_ctrl_c_ends_endless_printing(repl, line):
    repl.type_block(f"def forever():\n    while True: {line}\n")
    repl.start("forever()")
    repl.page.wait_for_function("document.querySelector('#transcript .fold') !== null")
    assert drawn_characters(repl.page) < DRAWN
    repl.page.keyboard.press("Control+c")
    repl.ready(10_000)
    assert repl.output().endswith("KeyboardInterrupt\n")
    assert drawn_characters(repl.page) < DRAWN
    assert repl.type("1 + 1") == "2\n"


def test_python_waits_for_a_page_that_is_busy(repl):
    repl.type_block("def count():\n    i = 0\n    while True:\n        i += 1\n        print(i)\n")
    repl.start("count()")
    repl.page.wait_for_function("document.querySelector('#transcript .fold') !== null")
    last = (
        "Number([...document.querySelectorAll('#transcript .stdout')].at(-1).textContent.split('\\n').at(-2))"
    )
    before = repl.page.evaluate(
        f"""() => {{
            const printed = {last};
            const until = performance.now() + 3000;
            while (performance.now() < until);
            document.getElementById("interrupt").click();
            return printed;
        }}"""
    )
    repl.ready(10_000)
    assert repl.output().endswith("KeyboardInterrupt\n")
    assert before < repl.page.evaluate(last) < before + 10_000  # tens of thousands where nothing holds it up


def test_streams_and_values_come_in_the_order_in_which_they_were_written(repl):
    repl.type("import sys")
    printed = repl.type("for i in range(800): print(i, file=(sys.stdout, sys.stderr)[i % 2])", "")
    assert printed == "".join(f"{i}\n" for i in range(800))
    printed = repl.type("print('a'); print('b', file=sys.stderr); 'c'; print('d', end=''); 1 / 0")
    assert re.sub(r"\s*Traceback.*\n(.*\n)*", "T", printed) == "a\nb\n'c'\ndT"
    kinds = repl.page.locator("#transcript > *").evaluate_all(
        "all => all.slice(-4).map((one) => one.className)"
    )
    assert kinds == ["stdout", "stderr", "stdout", "stderr"]


def test_a_carriage_return_begins_the_line_anew(repl):
    assert repl.type(r"print('step 1', end=''); print('\rstep 2', end=''); print('\rstop')") == "stop 2\n"
    assert repl.type(r"print('a\r\nb\rc\n', end='')") == "a\nc\n"
    repl.editor.fill(r"for i in range(20_000): print(f'\rstep {i}', end='')")
    repl.editor.press("Control+Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    assert repl.output() == "step 19999"


def test_the_transcript_is_bounded_and_says_what_it_let_go(page, site_server):
    page.goto(site_server.url)
    said = page.evaluate(
        """async () => {
            const { Transcript } = await import("/web/repl/transcript.js");
            document.body.innerHTML = '<main><div id="all"></div><div class="prompt"></div></main>';
            const all = document.getElementById("all");
            const transcript = new Transcript(all, document.querySelector("main"));
            const said = [];
            for (const [passages, lines] of [[40, 10_000], [5_000, 3]]) {
                for (let i = 0; i < passages; i++) {
                    transcript.block("input", ">>> again\\n");
                    transcript.print("stdout", "a line of output\\n".repeat(lines));
                    if (i % 20 === 19) transcript.draw();
                }
                said.push([all.textContent.length, all.childElementCount, all.firstElementChild.textContent]);
            }
            transcript.clear();
            return [...said, [all.textContent.length, all.childElementCount, ""]];
        }"""
    )
    (long, _, _), (short, blocks, first), empty = said
    assert long < 1_500_000
    assert short < 1_500_000
    assert blocks < 11_000
    let_go = re.match(r"⋯ ([\d,]+) lines \(([\d,]+) characters\) before dropped", first)
    assert let_go
    assert int(let_go[1].replace(",", "")) > 100_000
    assert empty == [0, 0, ""]


def test_history_does_not_outgrow_the_storage(page, site_server):
    page.goto(site_server.url)
    kept = page.evaluate(
        """async () => {
            const { History } = await import("/web/repl/history.js");
            const history = new History();
            const long = ["x".repeat(3_000_000), "y".repeat(300_000), "z".repeat(300_000)];
            for (const text of ["first", ...long, "last"]) history.add(text);
            return JSON.parse(Object.values(localStorage)[0]).map((entry) => entry.slice(0, 5));
        }"""
    )
    assert kept == ["zzzzz", "last"]


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
    repl.type("import asyncio", "task = asyncio.create_task(asyncio.sleep(10))", "_ = task.cancel()")
    assert repl.type("await task").endswith("asyncio.exceptions.CancelledError\n")
    assert "KeyboardInterrupt" not in repl.output()


@pytest.mark.parametrize("wait", ["x.sum().item()", "torch.webgpu.synchronize()"])
@pytest.mark.parametrize("long", [False, True], ids=["many", "long"])
def test_ctrl_c_interrupts_waits_for_the_device(repl, wait, long):
    repl.type("import pellucid as torch", "x = torch.ones(1024, 1024) * 1e-3", "torch.webgpu.synchronize()")
    work = "for _ in range(8): y = x @ x\n        " if long else ""
    repl.type_block(f"def forever():\n    while True:\n        {work}{wait}\n")
    repl.start("forever()")
    repl.page.wait_for_timeout(200)
    repl.page.keyboard.press("Control+c")
    repl.ready(30_000)
    assert "KeyboardInterrupt\n" in repl.output()
    assert repl.type("torch.ones(2).sum().item()") == "2.0\n"


def test_ctrl_c_leaves_the_line_that_is_being_typed(repl):
    repl.editor.press_sequentially("half a line")
    repl.editor.press("Control+c")
    expect(repl.editor).to_have_value("")
    assert repl.type("1") == "1\n"


def test_ctrl_c_copies_where_text_is_selected(repl):
    repl.editor.press_sequentially("chosen")
    repl.editor.press("Control+a")
    repl.editor.press("Control+c")
    expect(repl.editor).to_have_value("chosen")


def test_tab_completes_names_and_attributes(repl):
    repl.type("import json", "long_name = 1")
    repl.editor.press_sequentially("long_na")
    repl.editor.press("Tab")
    expect(repl.editor).to_have_value("long_name")
    repl.editor.fill("x = json.lo")
    repl.editor.press("Tab")
    expect(repl.editor).to_have_value("x = json.load")
    options = repl.options
    expect(options).to_have_text(["json.load(", "json.loads("])
    repl.editor.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(repl.editor).to_have_attribute("aria-activedescendant", "completion-1")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("x = json.loads(")
    expect(options).to_have_count(0)
    assert repl.type("'[1]')", "x") == "[1]\n"


def test_tab_offers_rooms_that_are_not_open_yet_and_no_inner_ones(repl):
    repl.type("import pellucid")
    names = repl.type("' '.join(dir(pellucid))").split()
    assert {"debug", "lens", "nn", "AutoModelForCausalLM", "matmul"} <= {name.strip("'") for name in names}
    assert not {"fusion", "kernel", "op", "ops", "tensors", "methods"} & set(names)


def test_tab_in_a_call_shows_its_signature_and_a_question_mark_the_docs(repl):
    repl.type("import pellucid as torch", "model = torch.nn.Sequential(torch.nn.Linear(2, 2))")
    repl.editor.press_sequentially("torch.linspace(")
    repl.editor.press("Tab")
    hint = repl.page.locator("#hint")
    expect(hint).to_contain_text("torch.linspace(start")
    expect(repl.options).to_have_count(0)
    repl.editor.press_sequentially("0")
    expect(hint).to_be_hidden()
    for typed, whole in (
        ("model[0].wei", "model[0].weight"),
        ("import pellu", "import pellucid"),
        ("from torch.nn import LayerN", "from torch.nn import LayerNorm"),
        ("torch.deb", "torch.debug"),
        ("torch.AutoModelForCaus", "torch.AutoModelForCausalLM"),
    ):
        repl.editor.fill(typed)
        repl.editor.press("Tab")
        expect(repl.editor).to_have_value(whole)
    repl.editor.fill("")
    assert repl.type("torch.linspace?").startswith("torch.linspace(start")
    repl.editor.fill("nothing_of_that_name.x")
    repl.editor.press("Tab")
    expect(hint).to_have_text("Nothing to complete here.")
    repl.editor.fill("")


def test_a_long_list_of_completions_is_cut_and_says_so(repl):
    repl.type_block("class Many:\n    def __dir__(self): return [f'name{i:05}' for i in range(20_000)]\n")
    repl.type("many = Many()")
    repl.editor.press_sequentially("many.n")
    repl.editor.press("Tab")
    expect(repl.editor).to_have_value("many.name")
    expect(repl.options).to_have_count(200)
    expect(repl.page.locator("#completions li").last).to_have_text("⋯ 19,800 more: type on")
    repl.editor.press("ArrowUp")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("many.name00199")


def test_tab_on_the_empty_first_line_takes_the_hint(fresh_repl):
    expect(fresh_repl.editor).to_have_attribute("placeholder", "import pellucid as torch")
    fresh_repl.editor.press("Tab")
    expect(fresh_repl.editor).to_have_value("import pellucid as torch")
    fresh_repl.type("")
    assert fresh_repl.type("torch.__name__") == "'pellucid'\n"


def test_escape_then_tab_leaves_the_editor(repl):
    repl.editor.press("Escape")
    repl.editor.press("Tab")
    expect(repl.editor).not_to_be_focused()


def test_history_is_kept_over_a_reload(fresh_repl):
    fresh_repl.type("first = 1", "second = 2")
    fresh_repl.editor.press_sequentially("draft")
    for key, shown in [
        ("ArrowUp", "second = 2"),
        ("ArrowUp", "first = 1"),
        ("ArrowDown", "second = 2"),
        ("ArrowDown", "draft"),
    ]:
        fresh_repl.editor.press(key)
        expect(fresh_repl.editor).to_have_value(shown)
    fresh_repl.page.reload()
    fresh_repl.ready(BOOT)
    fresh_repl.editor.press("ArrowUp")
    expect(fresh_repl.editor).to_have_value("second = 2")
    fresh_repl.type("")
    assert fresh_repl.type("second") == "2\n"


def test_input_asks_in_the_page(repl):
    repl.editor.press_sequentially("name = input('Who? ')")
    repl.editor.press("Enter")
    repl.page.wait_for_selector("body[data-state=asking]")
    expect(repl.page.locator("#mark")).to_have_text("Who?")
    repl.editor.press_sequentially("Ada")
    repl.editor.press("Enter")
    repl.ready()
    assert repl.type("name") == "'Ada'\n"


def test_a_tensor_is_printed_and_read(repl):
    repl.type("import pellucid as torch", "x = torch.tensor([1., 2., 3.])")
    assert repl.type("x") == "tensor([1., 2., 3.])\n"
    assert repl.type("(x * 2).sum().item()") == "12.0\n"
    assert repl.type("print(x + 1)") == "tensor([2., 3., 4.])\n"


def test_import_torch_finds_pellucid(repl):
    repl.type("import torch.nn.functional as F", "import torch")
    assert (
        repl.type("torch.cuda.is_available(), torch.Tensor")
        == "(False, <class 'pellucid.tensors.tensor.Tensor'>)\n"
    )
    assert repl.type("F.relu(torch.tensor([-1.0, 2.0]))") == "tensor([0., 2.])\n"


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


def test_a_lost_device_is_told_and_reset_begins_anew(repl):
    repl.type("import pellucid as torch", "from pellucid.device.stream import stream", "x = torch.ones(3)")
    for _ in range(2):
        assert repl.type("x.sum().item()") == "3.0\n"
        repl.type("stream().open().stream.device.destroy()")
        for line in ("(x + 1).tolist()", "torch.addcmul(x, x, x).tolist()"):
            assert re.search(r"DeviceError: .*destroyed.*\n$", repl.type(line)), line
        assert repl.type("torch.webgpu.reset()", "x = torch.ones(3)") == ""


def test_restart_begins_anew(repl):
    repl.type("x = 1")
    repl.restart()
    expect(repl.editor).to_be_disabled()
    repl.ready(BOOT)
    expect(repl.editor).to_be_focused()
    assert "NameError: name 'x' is not defined" in repl.type("x")


def test_a_restart_that_is_not_meant_keeps_the_session(repl):
    repl.type("kept = 1")
    repl.page.get_by_role("button", name="Restart Python").click()
    repl.page.keyboard.press("Escape")
    expect(repl.page.get_by_role("dialog")).to_be_hidden()
    expect(repl.editor).to_be_focused()
    assert repl.type("kept") == "1\n"


def test_a_phone_has_keys_and_rows_that_fit(browser, site_server):
    context = browser.new_context(viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True)
    repl = Repl(context.new_page(), site_server).open()
    repl.editor.press_sequentially("import pel")
    repl.editor.fill("x = 1")
    repl.page.get_by_role("button", name="New line").tap()
    repl.editor.press_sequentially("x")
    repl.editor.press("Control+Enter")
    repl.ready()
    assert repl.output() == "1\n"
    repl.page.get_by_role("button", name="Earlier input").tap()
    expect(repl.editor).to_have_value("x = 1\nx")
    repl.editor.fill("import pellucid as torch; torch.ones(12) / 3")
    repl.editor.press("Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    assert max(map(len, repl.output().split("\n"))) < 40
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert repl.page.evaluate(fits)
    context.close()


def test_values_draw_themselves(repl):
    repl.type("import pellucid as torch")
    assert repl.type("torch.linspace(-1, 1, 64).reshape(8, 8)").startswith("tensor([[-1.0000")
    frame = repl.page.frame_locator("iframe.picture")
    expect(frame.locator("body")).to_contain_text("[8, 8] · pellucid.float32 · webgpu · -1 to 1 · mean ")
    expect(frame.locator("body")).to_contain_text("no NaN")
    expect(frame.get_by_role("img", name="heat map of 8 by 8")).to_be_visible()
    expect(frame.get_by_role("img", name="histogram from -1 to 1").locator("rect")).to_have_count(32)
    repl.page.get_by_role("button", name="Clear").click()
    repl.type("torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Sequential(torch.nn.Linear(8, 2)))")
    expect(frame.locator("summary").first).to_contain_text("Sequential 58 parameters · 232 bytes")
    tall = "() => document.querySelector('iframe.picture').offsetHeight"
    before = repl.page.evaluate(tall)
    frame.locator("summary").last.click()
    repl.page.wait_for_function(f"before => ({tall})() > before", arg=before)
    repl.page.get_by_role("button", name="Clear").click()
    repl.type("torch.lens.Seen({'embed': torch.ones(3, 4)})")
    expect(frame.get_by_role("row")).to_contain_text("embed")
    repl.page.get_by_role("button", name="Clear").click()
    evil = "<img src=x onerror='parent.was = 1'><p>drawn</p>"
    repl.type_block(f'class Evil:\n    def _repr_html_(self): return "{evil}"\n')
    repl.type("Evil()")
    expect(frame.locator("p")).to_have_text("drawn")
    assert repl.page.evaluate("window.was === undefined")


def test_a_statement_is_timed(repl):
    assert re.fullmatch(r"5\n[\d.]+ (s|ms|µs), until the device was done\n", repl.type("%time 2 + 3"))
    assert "SyntaxError" in repl.type("%timer 2")


def test_the_quick_examples_run(repl):
    menu = repl.page.get_by_role("combobox", name="Examples")
    for name in ("Look at tensors", "Trace every dispatch", "Time a product"):
        menu.select_option(label=name)
        expect(repl.editor).to_be_focused()
        repl.editor.press("Control+Enter")
        expect(repl.editor).to_have_value("")
        repl.ready()
        assert repl.output(), name
    expect(repl.page.locator("#transcript .stderr")).to_have_count(0)


def test_a_link_offers_its_program_with_packages_of_a_named_folder(repl, page):
    program = "import iniconfig\nname = iniconfig.__name__ + '#ü'"
    repl.editor.fill(program)
    repl.page.get_by_role("button", name="Share").click()
    expect(repl.page).to_have_url(re.compile("#code="))
    code = repl.page.url.partition("#")[2]
    with StaticServer(SITE, {"more": TEST_SITE}) as server:
        linked = Repl(page, server)
        page.goto(f"{server.url}web/repl/?packages=/more#{code}")
        linked.ready(BOOT)
        expect(linked.notes).to_contain_text("More packages come from")
        expect(linked.notes).to_contain_text("The program comes from the link")
        expect(linked.editor).to_have_value(program)
        assert linked.inputs() == []
        linked.editor.press("Control+Enter")
        expect(linked.editor).to_have_value("")
        linked.ready()
        assert linked.type("name") == "'iniconfig#ü'\n"
        assert "micropip.install('matplotlib')" in linked.type("import matplotlib")


def test_a_dropped_file_is_a_source_and_a_file(repl):
    header = b'{"x":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    data = len(header).to_bytes(8, "little") + header + bytes(8)
    repl.page.evaluate(
        """bytes => {
            const dataTransfer = new DataTransfer();
            dataTransfer.items.add(new File([new Uint8Array(bytes)], "tiny.safetensors"));
            const drop = new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true });
            document.body.dispatchEvent(drop);
        }""",
        list(data),
    )
    expect(repl.page.get_by_role("log")).to_contain_text("dropped = tiny.safetensors (70 bytes)")
    repl.type("import pellucid as torch")
    assert repl.type("torch.weights.open(dropped)['x'].shape") == "(2,)\n"
    assert repl.type("len(open('tiny.safetensors', 'rb').read())") == "70\n"


def test_clear_empties_the_transcript_and_nothing_else(repl):
    repl.type("x = 1")
    repl.page.get_by_role("button", name="Clear").click()
    expect(repl.page.get_by_role("log")).to_have_text("")
    assert repl.type("x") == "1\n"


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
    repl.editor.fill("for i in range(20_000): print(i)\nprint('end', file=sys.stderr); 'value'")
    repl.editor.press("Control+Enter")
    expect(repl.editor).to_have_value("")
    repl.ready()
    assert repl.output().endswith("19998\n19999\nend\n'value'\n")
    lines = saved(repl).split("\n")
    assert lines[2:] == [*map(str, range(20_000)), "end", "'value'", ""]
    repl.type_block("def forever():\n    while True: print('spam')\n")
    repl.start("forever()")
    repl.page.wait_for_function("document.querySelectorAll('#transcript .fold').length === 2")
    repl.restart()
    assert drawn_characters(repl.page) < 2 * DRAWN
    repl.ready(BOOT)
    assert repl.type("1 + 1") == "2\n"


def test_without_webgpu_the_page_says_so_and_the_cpu_works(page, site_server):
    page.add_init_script("delete Navigator.prototype.gpu;")
    repl = Repl(page, site_server).open()
    expect(repl.notes).to_contain_text("This browser has no WebGPU.")
    expect(repl.notes).to_contain_text('torch.set_default_device("cpu")')
    repl.type("import pellucid as torch", 'torch.set_default_device("cpu")')
    assert repl.type("(torch.tensor([1., 2.]) + 1).tolist()") == "[2.0, 3.0]\n"


def test_output_is_announced_and_the_page_needs_nothing_from_outside(repl):
    expect(repl.page.get_by_role("log")).to_have_attribute("aria-live", "polite")
    assert all(request.headers["host"].startswith("127.0.0.1") for request in repl.server.requests)
    expect(repl.editor).to_be_focused()
