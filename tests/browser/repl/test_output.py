"""What the REPL shows: values, tracebacks, long output, in order, and no more than a page holds."""

import re

from playwright.sync_api import expect

from browser.repl.page import DRAWN


def test_values_are_shown_as_python_shows_them(repl):
    assert repl.type("1 + 1") == "2\n"
    assert repl.type("_ * 2") == "4\n"
    assert repl.type("None") == ""
    assert repl.type("x = 'é日'") == ""
    assert repl.type("x") == "'é日'\n"
    assert repl.type("print(x, end='')") == "é日"
    assert repl.type("1; 2") == "1\n2\n"
    assert repl.inputs()[0] == ">>> 1 + 1"


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


def test_long_output_is_folded_and_all_of_it_can_be_drawn_and_saved(repl):
    repl.fill("for i in range(30_000): print(i, 'lines')")
    repl.editor.press("Control+Enter")
    repl.holds("")
    repl.ready()
    lines = [f"{i} lines" for i in range(30_000)]
    shown = repl.output().split("\n")
    assert shown[:100] == lines[:100]
    assert shown[-101:] == [*lines[-100:], ""]
    assert repl.drawn() < DRAWN
    fold = repl.page.locator("#transcript .fold")
    found = re.search(r"([\d,]+) lines \(([\d,]+) characters\) folded away", fold.inner_text())
    assert found
    hidden = int(found[1].replace(",", ""))
    drawn = "".join(repl.page.locator("#transcript .stdout").all_text_contents())
    assert drawn.count("\n") == 30_000 - hidden
    assert repl.saved().split("\n", 1)[1] == "\n".join([*lines, ""])
    while fold.count():
        fold.get_by_role("button", name="Show more").click()
        repl.page.wait_for_timeout(50)
    assert repl.output() == "\n".join([*lines, ""])


def test_a_long_value_is_folded(repl):
    shown = repl.type("'xé' * 1_000_000")
    assert shown.startswith("'xéxé")
    assert shown.endswith("éxé'\n")
    assert "characters folded away" in shown
    assert repl.drawn() < DRAWN
    assert repl.saved().split("\n", 1)[1] == "'" + "xé" * 1_000_000 + "'\n"


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
    repl.fill(r"for i in range(20_000): print(f'\rstep {i}', end='')")
    repl.editor.press("Control+Enter")
    repl.holds("")
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


def test_images_and_bundles_are_drawn_and_display_draws_in_loops(repl):
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    repl.enter(
        "import base64\n"
        f"class Dot:\n    def _repr_png_(self): return base64.b64decode('{dot}')\n"
        "class Bundle:\n    def _repr_mimebundle_(self, include=None, exclude=None):\n"
        "        return {'text/plain': 'no', 'text/html': '<b>bundled</b>'}, {}\n"
        "for value in (Dot(), Bundle(), 3): display(value)"
    )
    frames = repl.page.locator("iframe.picture")
    expect(frames).to_have_count(2)
    assert frames.first.content_frame.locator("img").evaluate("one => one.naturalWidth") == 1
    expect(frames.last.content_frame.locator("b")).to_have_text("bundled")
    assert repl.output() == "3\n"


def test_a_statement_is_timed(repl):
    assert re.fullmatch(r"5\n[\d.]+ (s|ms|µs), until the device was done\n", repl.type("%time 2 + 3"))
    assert "SyntaxError" in repl.type("%timer 2")


def test_clear_empties_the_transcript_and_nothing_else(repl):
    repl.type("x = 1")
    repl.page.get_by_role("button", name="Clear").click()
    expect(repl.page.get_by_role("log")).to_have_text("")
    assert repl.type("x") == "1\n"


def test_output_is_announced_and_the_page_needs_nothing_from_outside(repl):
    expect(repl.page.get_by_role("log")).to_have_attribute("aria-live", "polite")
    assert all(request.headers["host"].startswith("127.0.0.1") for request in repl.server.requests)
    expect(repl.editor).to_be_focused()


def test_ansi_colours_and_styles_are_drawn_and_lines_erased(repl):
    repl.enter(
        r"""
import sys
print("\x1b[31mred\x1b[0m \x1b[1;44mbold\x1b[22m on blue\x1b[0m plain \x1b[38;5;208mlate\x1b[m")
print("\x1b]8;;https://example.org\x07link\x1b]8;;\x07 \x1b[38;2;1;2;3mrgb\x1b[0m \x1b[7minverse\x1b[0m")
for part in ("\x1b[3", "2mgr", "een\x1b", "[0m!\n"):
    print(part, end="", flush=True)
for done in (5, 50, 100):
    print(f"\r\x1b[K\x1b[36m{'#' * (done // 10)}\x1b[0m {done} %", end="", flush=True)
print("\r\x1b[Kdone")
"""
    )
    assert repl.output() == "red bold on blue plain late\nlink rgb inverse\ngreen!\ndone\n"
    spans = repl.page.locator("#transcript .stdout span").evaluate_all(
        "all => all.map((one) => [one.textContent, one.className, one.style.color])"
    )
    assert spans == [
        ["red", "ansi-fg-1", ""],
        ["bold", "ansi-bold ansi-bg-4", ""],
        [" on blue", "ansi-bg-4", ""],
        ["late", "", "rgb(255, 135, 0)"],
        ["rgb", "", "rgb(1, 2, 3)"],
        ["inverse", "", "var(--page)"],
        ["green", "ansi-fg-2", ""],
    ]
    repl.enter("for i in range(3000): print(f'\\x1b[3{i % 8}m{i}\\x1b[0m')")
    assert repl.output().startswith("0\n1\n2\n")
    assert repl.output().endswith("2998\n2999\n")


def test_tracebacks_are_coloured_as_in_cpython(repl):
    assert repl.type("1 / 0").endswith("ZeroDivisionError: division by zero\n")
    expect(repl.page.locator("#transcript .stderr .ansi-bold").last).to_have_text("ZeroDivisionError")
    assert repl.type("x = = 1").endswith("SyntaxError: invalid syntax\n")


def test_help_is_readable(repl):
    repl.type("import pellucid as torch")
    printed = repl.type("help(torch.linspace)")
    assert printed.startswith("Help on function linspace in module pellucid")
    assert "both included, equally far apart" in printed
    assert "\b" not in printed
    expect(repl.page.locator("#transcript .stdout .ansi-bold").first).to_have_text("linspace")
