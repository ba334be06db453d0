"""The REPL's session: what it runs, restarts, links, dropped files, phones and pages without WebGPU."""

import re

from playwright.sync_api import expect

from browser.repl.page import BOOT, Repl

from paths import SITE, TEST_SITE
from static_server import Response, StaticServer


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
    repl.fill("x = 1")
    repl.page.get_by_role("button", name="New line").tap()
    repl.editor.press_sequentially("x")
    repl.editor.press("Control+Enter")
    repl.ready()
    assert repl.output() == "1\n"
    repl.page.get_by_role("button", name="Earlier input").tap()
    repl.holds("x = 1\nx")
    repl.fill("import pellucid as torch; torch.ones(12) / 3")
    repl.editor.press("Enter")
    repl.holds("")
    repl.ready()
    assert max(map(len, repl.output().split("\n"))) < 40
    fits = "document.documentElement.scrollWidth <= innerWidth"
    assert repl.page.evaluate(fits)
    context.close()


def test_the_quick_examples_run(repl):
    menu = repl.page.get_by_role("combobox", name="Examples")
    for name in ("Look at tensors", "Trace every dispatch", "Draw where the time goes", "Time a product"):
        menu.select_option(label=name)
        expect(repl.editor).to_be_focused()
        repl.editor.press("Control+Enter")
        repl.holds("")
        repl.ready()
        assert repl.output(), name
    expect(repl.page.locator("#transcript .stderr")).to_have_count(0)


def test_a_link_offers_its_program_with_packages_of_a_named_folder(repl, page):
    program = "import iniconfig\nname = iniconfig.__name__ + '#ü'"
    repl.fill(program)
    repl.page.get_by_role("button", name="Share").click()
    expect(repl.page).to_have_url(re.compile("#code="))
    code = repl.page.url.partition("#")[2]
    with StaticServer(SITE, {"more": TEST_SITE}) as server:
        linked = Repl(page, server)
        page.goto(f"{server.url}web/repl/?packages=/more#{code}")
        linked.ready(BOOT)
        expect(linked.notes).to_contain_text("More packages come from")
        expect(linked.notes).to_contain_text("The program comes from the link")
        linked.holds(program)
        assert linked.inputs() == []
        linked.editor.press("Control+Enter")
        linked.holds("")
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


def test_without_webgpu_the_page_says_so_and_the_cpu_works(page, site_server):
    page.add_init_script("delete Navigator.prototype.gpu;")
    repl = Repl(page, site_server).open()
    expect(repl.notes).to_contain_text("This browser has no WebGPU.")
    expect(repl.notes).to_contain_text('torch.set_default_device("cpu")')
    repl.type("import pellucid as torch", 'torch.set_default_device("cpu")')
    assert repl.type("(torch.tensor([1., 2.]) + 1).tolist()") == "[2.0, 3.0]\n"


def without_jspi(_) -> Response:
    """The worker's script, in a browser that cannot suspend Python."""
    script = (SITE / "web" / "python_worker.js").read_text(encoding="utf-8")
    text = f"delete WebAssembly.Suspending; delete WebAssembly.promising;\n{script}"
    return Response(text.encode(), "text/javascript")


# What is typed where Python cannot be suspended, and what the answer has.
UNSUSPENDED = [
    ("import pellucid as torch\nx = torch.linspace(0, 1, 5)", ""),
    ("await (x @ x).item_async()", "1.875"),
    ("print(await x.numpy_async())", "[0.   0.25 0.5  0.75 1.  ]"),
    ("x", "to print, print(await x.numpy_async())"),
    ("x.sum().item()", "Await the same call with the suffix _async"),
    ("model = torch.nn.Linear(5, 1); before = await model.bias.tolist_async()", ""),
    ("optimizer = torch.optim.SGD(model.parameters(), 0.5); model(x).sum().backward(); optimizer.step()", ""),
    ("round(before[0] - (await model.bias.tolist_async())[0], 4)", "0.5"),
    ("from pellucid.models import LlamaConfig, LlamaForCausalLM", ""),
    ("llama = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, "
     "num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=8))", ""),
    ("(await llama.generate_async([1, 2], max_new_tokens=3)).shape", "Size([1, 5])"),
    ("llama.generate([1, 2], max_new_tokens=3)", "Await the same call with the suffix _async"),
    ("torch.AutoTokenizer.from_pretrained('/x')", "Await AutoTokenizer.from_pretrained_async"),
    ("torch.ones(3, device='cpu').sum().item()", "3.0"),
]  # fmt: skip


def test_without_jspi_all_but_blocking_reads_works_and_these_say_what_to_call(browser):
    with StaticServer(SITE, isolation=False, routes={"/web/python_worker.js": without_jspi}) as server:
        context = browser.new_context()
        repl = Repl(context.new_page(), server).open()
        expect(repl.notes).to_contain_text("This browser cannot suspend Python (no JSPI)")
        for line, words in UNSUSPENDED:
            printed = repl.enter(line)
            assert words in printed if words else printed.strip() == "", f"{line}\n{printed}"
        context.close()
