"""What goes wrong for whoever begins: each is answered with what is wrong and what to do."""

import pytest
from playwright.sync_api import expect

from browser.repl.page import BOOT, Repl

from paths import SITE, WEIGHTS
from static_server import Fault, Response, StaticServer

PAGE = b"<!doctype html><html><body>Sign in</body></html>"
ROUTES = {
    "/bad/page.gguf": lambda _: Response(PAGE, "text/html"),
    "/bad/noise.gguf": lambda _: Response(bytes(range(200, 256)) * 9, "application/octet-stream"),
    "/bad/empty.gguf": lambda _: Response(b"", "application/octet-stream"),
}
LOAD = "torch.AutoModelForCausalLM.from_pretrained({!r})"
# What is typed, and what the answer has.
ANSWERS = [
    ("torch.cuda.is_available()", "False"),
    ("import matplotlib", "Compiled ones are found where the page was opened with ?packages=ADDRESS"),
    ("import nonsense", "import micropip; await micropip.install('nonsense')"),
    ("torch.Tensor([1, 2])", "tensor([1., 2.])"),
    ("torch.ones(2).type()", "'torch.FloatTensor'"),
    ("exit()", "Python goes on here; press Restart Python to begin anew."),
    (LOAD.format("gpt2"), "a hub name with its owner, as openai-community/gpt2"),
    (LOAD.format("/bad/page.gguf"), "is a web page"),
    (LOAD.format("/bad/noise.gguf"), "is neither GGUF nor JSON: it begins with"),
    (LOAD.format("/bad/empty.gguf"), "It is cut short; download it again."),
    (LOAD.format("/bad/none.gguf"), "there is no such file (status 404). Check the address"),
    (LOAD.format("/bad/100%.gguf"), "there is no such file (status 404). Check the address"),
    (LOAD.format("C:\\Users\\me\\x.gguf"), "is a path of your computer, which a page cannot open"),
    (LOAD.format("ftp://example.org/x.gguf"), "An address begins with http:// or https://."),
    ("model = LlamaForCausalLM(LlamaConfig(vocab_size=8, hidden_size=8, intermediate_size=8, "
     "num_hidden_layers=1, num_attention_heads=1, max_position_embeddings=8))", ""),
    ("model.generate([])", "must be (batch, time) with at least one position"),
    ("model.generate([1] * 20)", "over the model's 8. Shorten the prompt or max_new_tokens."),
]  # fmt: skip


@pytest.fixture(scope="module")
def session(browser):
    with StaticServer(SITE, {"weights": WEIGHTS}, routes=ROUTES) as server:
        context = browser.new_context()
        repl = Repl(context.new_page(), server).open()
        repl.type("import pellucid as torch", "from pellucid.models import LlamaConfig, LlamaForCausalLM")
        yield repl
        context.close()


def test_each_mistake_is_answered(session):
    for line, words in ANSWERS:
        printed = session.enter(line)
        assert words in printed, f"{line}\n{printed}"
        assert not printed.startswith("Traceback") or "pellucid_repl" not in printed


def test_a_download_is_cancelled_and_begun_again(session):
    repl = session
    slow = Fault(bytes_per_second=2_000_000)
    repl.server.faults = lambda request: slow if request.path.startswith("/weights/") else None
    name = next(WEIGHTS.glob("*.gguf")).name
    repl.fill(f"model = torch.AutoModelForCausalLM.from_pretrained('/weights/{name}', on_progress=print)")
    repl.editor.press("Enter")
    expect(repl.page.get_by_role("log")).to_contain_text("% of 96", timeout=BOOT)
    repl.page.keyboard.press("Control+c")
    repl.ready()
    assert repl.output().endswith("KeyboardInterrupt\n")
    repl.server.faults = None
    assert repl.enter("len(model.model.layers)") == "1\n"  # the one before is kept
