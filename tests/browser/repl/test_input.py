"""The REPL's editor: blocks, pasted programs, history, completion, questions that a program asks."""

import doctest
import re
from contextlib import suppress

from playwright.sync_api import expect

from browser.repl.page import BOOT

from paths import ROOT


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


def test_a_block_is_indented_and_ends_with_an_empty_line(repl):
    repl.editor.press_sequentially("def double(x):")
    repl.editor.press("Enter")
    repl.holds("def double(x):\n    ")
    repl.editor.press_sequentially("if x:")
    repl.editor.press("Enter")
    repl.holds("def double(x):\n    if x:\n        ")
    repl.editor.press_sequentially("return x * 2")
    repl.editor.press("Enter")
    repl.holds("def double(x):\n    if x:\n        return x * 2\n    ")
    repl.editor.press("Backspace")
    repl.holds("def double(x):\n    if x:\n        return x * 2\n")
    repl.editor.press("Enter")
    repl.holds("")
    assert repl.type("double(21)") == "42\n"
    assert repl.inputs()[0].split("\n")[:2] == [">>> def double(x):", "...     if x:"]


def test_pasted_statements_run_in_order(repl):
    repl.fill("def inc(n):\n    return n + 1\ninc(1)\nfor i in range(2):\n    print(i)\n")
    repl.editor.press("Enter")
    repl.holds("")
    repl.ready()
    assert repl.output() == "2\n0\n1\n"


def test_brackets_close_and_enter_between_them_begins_a_line(repl):
    repl.editor.press_sequentially("x = [")
    repl.holds("x = []")
    repl.editor.press("Enter")
    repl.editor.press_sequentially("1,")
    repl.editor.press("Enter")
    repl.editor.press_sequentially("'two'")
    repl.holds("x = [\n    1,\n    'two'\n]")
    repl.editor.press("Control+Enter")
    repl.ready()
    assert repl.type("print(len(x), max([3, (4)]))") == "2 4\n"


def test_what_is_typed_and_what_was_have_the_colours_of_python(repl):
    repl.editor.press_sequentially("for i in [1, 'two']: print(i)  # both")
    classes = {"tok-keyword": "for", "tok-number": "1", "tok-string": "'two'", "tok-comment": "# both"}
    for name, text in classes.items():
        expect(repl.page.locator(f".cm-line .{name}").first).to_have_text(text)
    repl.editor.press("Control+Enter")
    repl.holds("")
    repl.ready()
    for name, text in classes.items():
        expect(repl.page.locator(f"#transcript .{name}").first).to_have_text(text)
    assert repl.inputs() == [">>> for i in [1, 'two']: print(i)  # both"]


def test_undo_brings_back_what_was_typed(repl):
    repl.editor.press_sequentially("precious")
    repl.editor.press("Control+a")
    repl.editor.press("Delete")
    repl.holds("")
    repl.editor.press("Control+z")
    repl.holds("precious")


def test_an_example_is_pasted_without_its_prompts_and_outputs(repl):
    repl.paste(">>> def inc(n):\n...     return n + 1\n...\n>>> inc(1)\n2\n>>> inc(2)\n3\n")
    repl.holds("def inc(n):\n    return n + 1\n\ninc(1)\ninc(2)")
    repl.editor.press("Control+Enter")
    repl.holds("")
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
    repl.holds("unfinished")


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


def test_ctrl_c_leaves_the_line_that_is_being_typed(repl):
    repl.editor.press_sequentially("half a line")
    repl.editor.press("Control+c")
    repl.holds("")
    assert repl.type("1") == "1\n"


def test_ctrl_c_copies_where_text_is_selected(repl):
    repl.editor.press_sequentially("chosen")
    repl.editor.press("Control+a")
    repl.editor.press("Control+c")
    repl.holds("chosen")


def test_tab_completes_names_and_attributes(repl):
    repl.type("import json", "long_name = 1")
    repl.editor.press_sequentially("long_na")
    repl.editor.press("Tab")
    repl.holds("long_name")
    repl.fill("x = json.lo")
    repl.editor.press("Tab")
    repl.holds("x = json.load")
    options = repl.options
    expect(options).to_have_text(["load(", "loads("])
    expect(repl.page.locator(".cm-completionInfo")).to_contain_text("json.load(fp, *, cls=None")
    repl.editor.press("ArrowDown")
    expect(options.nth(1)).to_have_attribute("aria-selected", "true")
    expect(repl.editor).to_have_attribute("aria-activedescendant", options.nth(1).get_attribute("id") or "?")
    expect(repl.page.locator(".cm-completionInfo")).to_contain_text("Deserialize ``s``")
    repl.editor.press("Enter")
    repl.holds("x = json.loads(")
    expect(options).to_have_count(0)
    expect(repl.hint).to_contain_text("json.loads(s, *, cls=None")
    assert repl.type("'[1]')", "x") == "[1]\n"


def test_tab_offers_rooms_that_are_not_open_yet_and_no_inner_ones(repl):
    repl.type("import pellucid")
    names = repl.type("' '.join(dir(pellucid))").split()
    assert {"debug", "lens", "nn", "AutoModelForCausalLM", "matmul"} <= {name.strip("'") for name in names}
    assert not {"fusion", "kernel", "op", "ops", "tensors", "methods"} & set(names)


def test_tab_in_a_call_shows_its_signature_and_a_question_mark_the_docs(repl):
    repl.type("import pellucid as torch", "model = torch.nn.Sequential(torch.nn.Linear(2, 2))")
    repl.editor.press_sequentially("x = torch.linspace(")
    expect(repl.hint).to_contain_text("torch.linspace(start")
    repl.editor.press("Escape")
    expect(repl.hint).to_be_hidden()
    repl.editor.press("Tab")
    expect(repl.hint).to_contain_text("torch.linspace(start")
    expect(repl.options).to_have_count(0)
    repl.editor.press_sequentially("0, 1, steps=3")
    expect(repl.hint).to_contain_text("torch.linspace(start")
    repl.editor.press_sequentially(")")
    expect(repl.hint).to_be_hidden()
    repl.holds("x = torch.linspace(0, 1, steps=3)")
    for typed, whole in (
        ("model[0].wei", "model[0].weight"),
        ("import pellu", "import pellucid"),
        ("from torch.nn import LayerN", "from torch.nn import LayerNorm"),
        ("torch.deb", "torch.debug"),
        ("torch.AutoModelForCaus", "torch.AutoModelForCausalLM"),
    ):
        repl.fill(typed)
        repl.editor.press("Tab")
        repl.holds(whole)
    repl.fill("")
    assert repl.type("torch.linspace?").startswith("torch.linspace(start")
    repl.fill("nothing_of_that_name.x")
    repl.holds("nothing_of_that_name.x")
    for patience in (2000, 5000, 15000):  # it is shown for a moment, which a slow machine may not see
        repl.editor.press("Tab")
        with suppress(AssertionError):
            expect(repl.hint).to_have_text("Nothing to complete here.", timeout=patience)
            break
    else:
        raise AssertionError("no hint says that there is nothing to complete")
    repl.fill("")


def test_a_long_list_of_completions_is_drawn_where_it_is_seen_and_narrowed_by_typing(repl):
    repl.type_block("class Many:\n    def __dir__(self): return [f'name{i:05}' for i in range(20_000)]\n")
    repl.type("many = Many()")
    repl.editor.press_sequentially("many.n")
    repl.editor.press("Tab")
    repl.holds("many.name")
    expect(repl.options).to_have_count(100)
    repl.editor.press("ArrowUp")
    expect(repl.options.last).to_have_text("name19999")
    repl.editor.press_sequentially("123")
    expect(repl.options.first).to_have_text("name12300")
    repl.editor.press("Enter")
    repl.holds("many.name12300")


def test_tab_on_the_empty_first_line_takes_the_hint(fresh_repl):
    expect(fresh_repl.page.locator(".cm-placeholder")).to_have_text("import pellucid as torch")
    fresh_repl.editor.press("Tab")
    fresh_repl.holds("import pellucid as torch")
    fresh_repl.type("")
    assert fresh_repl.type("torch.__name__") == "'pellucid'\n"


def test_escape_then_tab_leaves_the_editor(repl):
    repl.editor.press_sequentially("x")
    repl.editor.press("Escape")
    repl.editor.press("Tab")
    expect(repl.editor).not_to_be_focused()
    repl.holds("x")


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
        fresh_repl.holds(shown)
    fresh_repl.page.reload()
    fresh_repl.ready(BOOT)
    fresh_repl.editor.press("ArrowUp")
    fresh_repl.holds("second = 2")
    fresh_repl.type("")
    assert fresh_repl.type("second") == "2\n"


def test_input_asks_in_the_page(repl):
    repl.editor.press_sequentially("name = input('Who? ')")
    repl.editor.press("Enter")
    repl.page.wait_for_selector("body[data-state=asking]")
    expect(repl.mark).to_have_text("Who?")
    repl.editor.press_sequentially("Ada")
    repl.editor.press("Enter")
    repl.ready()
    assert repl.type("name") == "'Ada'\n"
