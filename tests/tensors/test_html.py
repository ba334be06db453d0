"""What a notebook shows of tensors, modules and of what a lens saw."""

import base64
import re
import zlib

import numpy as np
import pytest

import pellucid as torch
from pellucid import lens, nn

NAN, INF = float("nan"), float("inf")


def pixels(html: str) -> np.ndarray:
    """The heat map [rows, columns, 3] in a picture."""
    found = re.search(r"heat map of (\d+) by (\d+).*?base64,([^\"]+)", html)
    assert found
    rows, columns = int(found[1]), int(found[2])
    file = base64.b64decode(found[3])
    data = file[file.index(b"IDAT") + 4 :]
    lines = np.frombuffer(zlib.decompressobj().decompress(data), np.uint8).reshape(rows, 1 + 3 * columns)
    return lines[:, 1:].reshape(rows, columns, 3)


def test_a_tensor_tells_its_facts_and_draws_its_values():
    x = torch.tensor([[-2.0, 0.0, 2.0, NAN, INF], [1.0, 1.0, 1.0, 1.0, 1.0]], requires_grad=True)
    html = x._repr_html_()
    for said in ("[2, 5]", "float32", "webgpu", "-2 to 2", "mean 0.625", "<b>1 NaN</b>"):
        assert said in html
    drawn = pixels(html).astype(int)
    assert drawn[0, 0].tolist() == [33, 102, 172]
    assert drawn[0, 2].tolist() == [178, 24, 43]
    assert drawn[0, 1].tolist() == [247, 247, 247]
    assert drawn[0, 3].tolist() == [255, 0, 255]
    assert drawn[0, 4].tolist() == [178, 24, 43]


@pytest.mark.parametrize(
    ("x", "said"),
    [
        (torch.arange(100_000, device="cpu"), "drawn from 50,000 of 100,000"),
        (torch.arange(24, device="cpu").to(torch.bfloat16).reshape(2, 3, 4), "heat map of 6 by 4"),
        (torch.arange(9, device="cpu") > 4, "mean 0.4444"),
        (torch.full((9,), NAN, device="cpu"), "9 NaN"),
        (torch.ones(300, 9, device="cpu")[:, 0], "1 to 1"),
    ],
    ids=["long", "bfloat16", "bool", "nothing finite", "a view"],
)
def test_tensors_of_all_kinds_are_drawn(x, said):
    assert said in x._repr_html_()


@pytest.mark.parametrize(
    "x",
    [
        torch.ones(8, device="cpu"),
        torch.ones(0, 9, device="cpu"),
        torch.ones(9, device="meta"),
        torch.ones(9, dtype=torch.complex64, device="cpu"),
    ],
    ids=["small", "empty", "meta", "complex"],
)
def test_the_text_is_enough_where_nothing_can_be_drawn(x):
    assert x._repr_html_() is None


def test_a_module_is_a_tree_with_sizes():
    model = nn.Sequential(nn.Linear(300, 1000), nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))
    html = model._repr_html_()
    assert re.findall(r"([\d,]+) parameters · ([\d.]+ \w+)", html) == [
        ("301,008", "1.2 MB"),
        ("301,000", "1.2 MB"),
        ("8", "32 bytes"),
        ("8", "32 bytes"),
    ]
    assert html.count("<details") == 2


def test_what_a_lens_saw_is_a_table():
    seen = lens.Seen({"layers.0": torch.ones(3, 4, device="cpu"), "<norm>": torch.ones(2, device="cpu")})
    html = seen._repr_html_()
    assert html.count("<tr>") == 2
    assert "heat map of 3 by 4" in html
    assert "&lt;norm&gt;" in html
    assert "tensor([1., 1.]" in html
