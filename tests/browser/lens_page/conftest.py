"""The lens page with a tiny model: one for all files here, which begin where the one before ended."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page
from safetensors.numpy import save_file

from browser.lens_page.page import CLEAN, COUNT
from browser.pages import press, ready
from models.tiny import loaded, made, saved, with_words
from pellucid import weights

from paths import SITE
from static_server import StaticServer


@pytest.fixture(scope="package")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A tiny model whose tokens are words."""
    return with_words(saved(made("llama_tied"), tmp_path_factory.mktemp("site") / "tiny"))


@pytest.fixture(scope="package")
def model(folder) -> Any:
    return loaded(folder, "cpu")


@pytest.fixture(scope="package")
def small(folder) -> Any:
    """The same model in eight bits."""
    weights.quantize(folder, folder.parent / "small", "q8_0")
    return folder.parent / "small"


@pytest.fixture(scope="package")
def arrays(folder) -> dict[str, np.ndarray]:
    """A sparse coder, which also lies beside the model."""
    encoder, decoder = np.random.default_rng(9).standard_normal((2, 32, 24)).astype("float32")
    made = {"W_enc": encoder, "W_dec": decoder.T.copy(), "b_enc": encoder[0], "b_dec": decoder[:, 0].copy()}
    save_file(made, folder / "sae.safetensors")
    return made


@pytest.fixture(scope="package")
def long(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A model of LongRoPE, which turns a text otherwise from 48 tokens on."""
    factors = {"short_factor": [1.0, 1.5, 2.0, 3.0], "long_factor": [1.0, 4.0, 9.0, 30.0]}
    original = {"original_max_position_embeddings": 48}
    theirs = made("phi3", rope_scaling={"rope_type": "longrope", **factors, **original}, **original)
    return with_words(saved(theirs, tmp_path_factory.mktemp("long") / "long"))


@pytest.fixture(scope="package")
def hub(folder, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A folder with the tree of a hub, where the model is owner/name."""
    root = tmp_path_factory.mktemp("hub")
    (root / "owner" / "name" / "resolve").mkdir(parents=True)
    (root / "owner" / "name" / "resolve" / "main").symlink_to(folder)
    return root


@pytest.fixture(scope="package")
def site(folder, small, long, hub) -> Iterator[StaticServer]:
    with StaticServer(SITE, {"tiny": folder, "small": small, "long": long, "hub": hub}) as server:
        yield server


@pytest.fixture(scope="package")
def page(browser: Browser, site: StaticServer) -> Iterator[Page]:
    """The page with the tiny model, three tokens behind the prompt."""
    context = browser.new_context(accept_downloads=True)
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.goto(f"{site.url}demo/logit_lens/?model=/tiny/&prompt={CLEAN.replace(' ', '+')}")
    ready(opened)
    opened.get_by_label("New tokens").fill(str(COUNT))
    press(opened, "Generate")
    yield opened
    context.close()
    assert not errors, f"uncaught errors in the page: {errors}"
