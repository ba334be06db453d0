"""What tests of the lens page do with it, and what a tiny model natively says."""

import csv
import io
import json
import struct
from pathlib import Path
from typing import Any

import torch
import transformers
from playwright.sync_api import Page, expect

from browser.pages import WAIT, press, ready
from models.tiny import VOCABULARY, ours, with_words
from pellucid import lens

IDS = [5, 17, 40, 8, 22]
CLEAN = "w5 w17 w40 w8 w22"
COUNT = 3


def zeros(folder: Path, words: int) -> Path:
    """A model of zeros whose embedding has so many rows of 1 KiB; its file takes no room on the disk."""
    config = transformers.LlamaConfig(
        vocab_size=words, hidden_size=256, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        tie_word_embeddings=True,
    )  # fmt: skip
    with torch.device("meta"):
        model = transformers.LlamaForCausalLM(config)
    header: dict[str, Any] = {}
    at = 0
    for name, p in model.named_parameters():
        header[name] = {"dtype": "F32", "shape": list(p.shape), "data_offsets": [at, at + 4 * p.numel()]}
        at += 4 * p.numel()
    folder.mkdir()
    config.save_pretrained(folder)
    text = json.dumps(header).encode()
    with (folder / "model.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)
    return with_words(folder)


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name).click()


def table(page: Page, name: str) -> list[dict[str, str]]:
    """The CSV that a picture is saved as."""
    with page.expect_download() as download:
        page.locator(f'#{name}-panel button[data-save="csv"]').click()
    ready(page)
    return list(csv.DictReader(io.StringIO(download.value.path().read_text(encoding="utf-8"))))


def picture(page: Page, name: str, kind: str) -> bytes:
    """The picture of an instrument, as it is saved."""
    with page.expect_download() as download:
        page.locator(f'#{name}-panel button[data-save="{kind}"]').click()
    return download.value.path().read_bytes()


def tokens(page: Page) -> list[str]:
    """The tokens up to the one that the page stands at."""
    return page.locator("#tree-view button.path").all_inner_texts()


def back_to(page: Page, number: int) -> None:
    open_tab(page, "Branch and step")
    page.locator(f'#tree-view [data-number="{number}"]').click()
    ready(page)


def said(model: Any, ids: list[int]) -> list[list[str]]:
    """What each layer would have said, the last one first."""
    look = lens.logit_lens(model, ours([ids], "cpu"), top_k=1).table()
    return [[f"w{cell[0][0]}" for cell in row] for row in reversed(look)]


def other_prompt(model: Any) -> list[int]:
    """A prompt that differs in one token, and that the model goes on with in another way."""
    answer = lens.Session(model, IDS).token().id
    others = ([*IDS[:2], k, *IDS[3:]] for k in range(41, VOCABULARY))
    return next(ids for ids in others if lens.Session(model, ids).token().id != answer)


def run_python(page: Page, code: str) -> None:
    """Run a program in the field of a picture."""
    open_tab(page, "Attention")
    press(page, "Look at all heads")
    field = page.locator("#attention-code")
    field.evaluate("details => details.open = true")
    field.get_by_role("textbox").fill(code)
    field.get_by_role("button", name="Run again").click()


def load(page: Page, source: str, says: str = "") -> None:
    """Load another model, or be told why it cannot be."""
    page.get_by_role("button", name="Load another", exact=True).click()
    page.get_by_label("Address, path on this site, or hub name").fill(source)
    if not says:
        return press(page, "Load")
    page.get_by_role("button", name="Load", exact=True).click()
    expect(page.locator("#notes strong")).to_have_text(says, timeout=WAIT)
