"""Encoders and T5 in GGUF files that the package writes as llama.cpp's converter does, and in ours."""

from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import tokenizers
import torch
import transformers
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

import pellucid
from models.test_encoders import inputs
from models.test_gguf_saving import contents, same_tensors
from models.tiny import close, made_encoder, made_seq2seq, ours, saved, some_ids
from pellucid.errors import ArgumentError, FormatError, WeightError

# What the converter calls each, and beginnings of what it leaves out.
ENCODERS = dict.fromkeys(("bert", "roberta", "xlm-roberta", "distilbert"), "bert")
ENCODERS["modernbert"] = "modern-bert"
T5 = ("t5", "t5_gated")


def written(model: Any, path: Path, kind: str, format: str = "f32", **tensors: np.ndarray) -> Path:
    """A model of transformers as a GGUF: positions from the first one that texts use, and no pooler."""
    c = model.config
    writer = gguf.GGUFWriter(path, kind)
    names = gguf.get_tensor_name_map(writer_arch(kind), c.num_hidden_layers)
    first = 1 + c.pad_token_id if "roberta" in c.model_type else 0
    writer.add_block_count(c.num_hidden_layers)
    writer.add_embedding_length(c.hidden_size)
    writer.add_head_count(c.num_attention_heads)
    if kind == "t5":
        add_t5(writer, c)
    else:
        writer.add_context_length(c.max_position_embeddings - first)
        writer.add_feed_forward_length(getattr(c, "hidden_dim", None) or c.intermediate_size)
        eps = getattr(c, "layer_norm_eps", 1e-12)
        writer.add_layer_norm_eps(c.norm_eps if kind == "modern-bert" else eps)
        writer.add_causal_attention(False)
        writer.add_pad_token_id(c.pad_token_id)
    if kind == "modern-bert":
        writer.add_sliding_window(c.local_attention)
        writer.add_sliding_window_pattern(3)
        writer.add_rope_scaling_type(gguf.RopeScalingType.NONE)
        writer.add_rope_freq_base(c.rope_parameters["full_attention"]["rope_theta"])
        writer.add_rope_freq_base_swa(c.rope_parameters["sliding_attention"]["rope_theta"])
    number = gguf.GGMLQuantizationType[format.upper()]
    for name, parameter in model.named_parameters():
        value = parameter.detach().numpy()
        if name.startswith("pooler."):
            continue
        value = value[first:] if "position_embeddings" in name else value
        found = names.get_name(name, try_suffixes=(".weight", ".bias"))
        if number == 0 or value.ndim == 1 or value.shape[1] % 32 or "embeddings" in name or "rel_b" in found:
            writer.add_tensor(found, value)
        else:
            writer.add_tensor(found, gguf.quants.quantize(value, number), raw_dtype=number)
    if getattr(c, "scale_decoder_outputs", True) is False:  # a head of its own
        writer.add_tensor("output.weight", model.lm_head.weight.detach().numpy())
    for name, value in tensors.items():
        writer.add_tensor(name, value)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def writer_arch(kind: str) -> Any:
    return next(arch for arch, name in gguf.MODEL_ARCH_NAMES.items() if name == kind)


def add_t5(writer: gguf.GGUFWriter, config: Any) -> None:
    writer.add_context_length(getattr(config, "n_positions", 512))
    writer.add_feed_forward_length(config.d_ff)
    writer.add_decoder_block_count(config.num_decoder_layers)
    writer.add_key_length(config.d_kv)
    writer.add_value_length(config.d_kv)
    writer.add_layer_norm_eps(config.layer_norm_epsilon)
    writer.add_layer_norm_rms_eps(config.layer_norm_epsilon)
    writer.add_relative_attn_buckets_count(config.relative_attention_num_buckets)
    writer.add_decoder_start_token_id(config.decoder_start_token_id)


def loaded(path: Path, device: str = "cpu", **settings: Any) -> Any:
    return pellucid.AutoModel.from_pretrained(str(path), device=device, **settings)


def seq2seq(path: Path, device: str = "cpu", **settings: Any) -> Any:
    return pellucid.AutoModelForSeq2SeqLM.from_pretrained(str(path), device=device, **settings)


@pytest.mark.parametrize("name", ENCODERS)
def test_an_encoder_agrees_and_is_written_as_it_was(name, tmp_path, device):
    theirs, kind = made_encoder(name, "Model"), ENCODERS[name]
    file = written(theirs, tmp_path / "theirs.gguf", kind)
    model, given = loaded(file, device), {k: v for k, v in inputs(name).items() if k != "token_type_ids"}
    with torch.no_grad(), pellucid.no_grad():
        wanted = theirs(**{k: torch.tensor(v) for k, v in given.items()}, output_hidden_states=True)
        got = model(**{k: ours(v, device) for k, v in given.items()}, output_hidden_states=True)
    seen = ours(given["attention_mask"], device).unsqueeze(-1)
    for mine, other in zip(got.hidden_states, wanted.hidden_states, strict=True):
        close(mine * seen, other * torch.tensor(given["attention_mask"]).unsqueeze(-1))
    # A folder and that file become the same one.
    keys, tensors = contents(file)
    for source in (saved(theirs, tmp_path / "folder"), file):
        loaded(source).save_gguf(tmp_path / "ours.gguf")
        again, mine = contents(tmp_path / "ours.gguf")
        same_tensors(mine, tensors)
        for key, value in keys.items():
            if source is file or not key.startswith("tokenizer."):
                assert again[key] == (pytest.approx(value) if isinstance(value, float) else value), key
    # And what transformers opens.
    model.save_pretrained(tmp_path / "again")
    if kind == name or kind == "modern-bert":
        opened = transformers.AutoModel.from_pretrained(tmp_path / "again")
        with torch.no_grad():
            other = opened(**{k: torch.tensor(v) for k, v in given.items()}).last_hidden_state
        close(got.last_hidden_state, other)


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_blocks_of_an_encoder(name, tmp_path, device):
    theirs = made_encoder(name, "Model")
    file, ids = written(theirs, tmp_path / "a.gguf", ENCODERS[name], "q8_0"), ours(some_ids(2, 9), device)
    model = loaded(file, device)
    assert sum(p.dtype.name == "q8_0" for p in model.parameters()) == {"bert": 10, "modernbert": 9}[name]
    with pellucid.no_grad():
        got, plain = (m(ids).last_hidden_state for m in (model, loaded(file, device, dtype=pellucid.float32)))
        np.testing.assert_allclose(got.numpy(), plain.numpy(), atol=1e-4)
        close(got, theirs(torch.tensor(some_ids(2, 9))).last_hidden_state, 5e-2)


@pytest.mark.parametrize("name", T5)
def test_t5_agrees_and_is_written_as_it_was(name, tmp_path, device):
    theirs, ids = made_seq2seq(name), some_ids(2, 9)
    file = written(theirs, tmp_path / "theirs.gguf", "t5")
    model = seq2seq(file, device)
    given = {"input_ids": ids, "decoder_input_ids": some_ids(2, 6, seed=1)}
    with torch.no_grad(), pellucid.no_grad():
        wanted = theirs(**{k: torch.tensor(v) for k, v in given.items()}).logits
        close(model(**{k: ours(v, device) for k, v in given.items()}).logits, wanted)
    text = theirs.generate(torch.tensor(ids), max_new_tokens=6, do_sample=False, eos_token_id=None)
    mine = model.generate(ours(ids, device), max_new_tokens=6)
    assert mine.tolist() == text.tolist()
    keys, tensors = contents(file)
    folder = saved(theirs, tmp_path / "folder")
    for source in (folder, file):
        seq2seq(source).save_gguf(tmp_path / "ours.gguf")
        again, found = contents(tmp_path / "ours.gguf")
        same_tensors(found, tensors)
        assert {k: again[k] for k in keys} == keys
    pellucid.convert(str(folder), tmp_path / "converted.gguf")
    same_tensors(contents(tmp_path / "converted.gguf")[1], tensors)
    read = load_gguf_checkpoint(tmp_path / "ours.gguf", return_tensors=True, model_to_load=theirs)
    names = ("lm_head.weight", *(path for path, _ in theirs.named_parameters()))
    assert set(read["tensors"]) == set(names[name == "t5" :])
    for path, value in read["tensors"].items():
        assert torch.equal(value, theirs.get_parameter(path)), path


def test_t5_in_blocks_and_as_a_folder(tmp_path, device):
    model = seq2seq(saved(made_seq2seq("t5_gated"), tmp_path / "folder"), device)
    kinds = model.save_gguf(tmp_path / "a.gguf", format="q8_0")
    assert {kinds[f"{s}.blk.0.{k}.weight"] for s in ("enc", "dec") for k in ("attn_q", "ffn_up")} == {"q8_0"}
    assert kinds["enc.blk.0.attn_rel_b.weight"] == "float32"
    of_gguf, ids = seq2seq(tmp_path / "a.gguf", device), ours(some_ids(2, 9), device)
    of_gguf.save_pretrained(tmp_path / "again")
    with pellucid.no_grad():
        models = of_gguf, seq2seq(tmp_path / "again", device)
        first, second = (m(ids, decoder_input_ids=ids).logits.numpy() for m in models)
    np.testing.assert_allclose(first, second, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("bert", {"hidden_act": "relu"}, "activation"),
        ("distilbert", {"activation": "relu"}, "activation"),
        ("modernbert", {"hidden_activation": "silu"}, "activation"),
        ("modernbert", {"norm_bias": True}, "norm_bias"),
        ("modernbert", {"layer_types": ["full_attention"] * 2 + ["sliding_attention"]}, "kinds"),
    ],
)
def test_what_a_gguf_cannot_say_is_refused(name, changes, words, tmp_path):
    theirs = made_encoder(name, "Model")
    config = type(theirs.config)(**{**theirs.config.to_dict(), **changes})
    model = loaded(saved(type(theirs)(config), tmp_path / "folder"))
    with pytest.raises(ArgumentError, match=rf"cannot say what .*{words}.* is\. Write a folder"):
        model.save_gguf(tmp_path / "a.gguf")
    assert not (tmp_path / "a.gguf").exists()


def test_t5_with_other_distances_is_refused(tmp_path):
    theirs = made_seq2seq("t5")
    theirs.config.relative_attention_max_distance = 64
    with pytest.raises(ArgumentError, match="relative_attention_max_distance"):
        seq2seq(saved(theirs, tmp_path / "folder")).save_gguf(tmp_path / "a.gguf")


def test_dropout_and_heads_are_no_reason_to_refuse(tmp_path):
    theirs = made_encoder("modernbert", "ForSequenceClassification")
    theirs.config.attention_dropout = theirs.config.classifier_dropout = 0.25
    loaded(saved(theirs, tmp_path / "folder")).save_gguf(tmp_path / "a.gguf")
    theirs = made_encoder("roberta", "ForMaskedLM")
    theirs.config.classifier_dropout, theirs.config.hidden_dropout_prob = 0.25, 0.0
    loaded(saved(theirs, tmp_path / "other")).save_gguf(tmp_path / "b.gguf")
    assert type(loaded(tmp_path / "b.gguf")).__name__ == "BertModel"


def test_files_that_contradict_themselves(tmp_path):
    bert, modern = made_encoder("bert", "Model"), made_encoder("modernbert", "Model")
    extra = {"rope_freqs.weight": np.ones(4, np.float32)}
    with pytest.raises(WeightError, match=r"not in the model: rope_freqs\.weight.*gguf_names"):
        loaded(written(bert, tmp_path / "a.gguf", "bert", **extra))
    file = written(modern, tmp_path / "b.gguf", "modern-bert")
    data = file.read_bytes()
    for old, new, words in (
        (b"\x04\0\0\0\0\0\0\0none", b"\x04\0\0\0\0\0\0\0yarn", "positions of ModernBERT are not scaled"),
        (b"attention.sliding_window\x04", b"attention.sliding_windox\x04", r"sliding_window is missing"),
        (b"rope.freq_base_swa", b"rope.freq_base_swb", r"freq_base_swa is missing"),
    ):
        assert data.count(old) == 1
        file.write_bytes(data.replace(old, new))
        with pytest.raises(FormatError, match=words):
            loaded(file)
    theirs = made_seq2seq("t5")
    with pytest.raises(FormatError, match="'t5' of a GGUF is not known to AutoModel, but to AutoM"):
        loaded(written(theirs, tmp_path / "c.gguf", "t5"))


def framed(first: str, last: str, normalizer: Any = None) -> transformers.PreTrainedTokenizerFast:
    """Byte-level BPE with a token before and one behind a text."""
    letters = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    words = [first, "<pad>", last, "<unk>", *letters, "Ġa", "th", "the"]
    vocabulary = {word: k for k, word in enumerate(words)}
    made = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, [("Ġ", "a"), ("t", "h"), ("th", "e")]))
    made.normalizer = normalizer
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single=f"{first} $A {last}", special_tokens=[(first, 0), (last, 2)]
    )
    ends = {"cls_token": first, "sep_token": last}
    if first == "<s>":
        ends |= {"bos_token": first, "eos_token": last}
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="<pad>", unk_token="<unk>", **ends
    )


@pytest.mark.parametrize("name", ["roberta", "modernbert"])
def test_a_tokenizer_of_bytes_goes_along(name, tmp_path):
    ends = ("<s>", "</s>") if name == "roberta" else ("[CLS]", "[SEP]")
    nfc = tokenizers.normalizers.NFC() if name == "modernbert" else None
    theirs, words = made_encoder(name, "Model"), framed(*ends, nfc)
    config = type(theirs.config)(**{**theirs.config.to_dict(), "vocab_size": len(words)})
    folder = saved(type(theirs)(config), tmp_path / "folder")
    words.save_pretrained(folder)
    pellucid.convert(folder, tmp_path / "a.gguf")
    keys, _ = contents(tmp_path / "a.gguf")
    assert keys["tokenizer.ggml.pre"] == ("gpt-2" if name == "roberta" else "modern-bert")
    assert keys["tokenizer.ggml.add_bos_token"]
    assert keys["tokenizer.ggml.add_eos_token"]
    again = pellucid.AutoTokenizer.from_pretrained(tmp_path / "a.gguf")
    for text in ("the cat, a the", "Cafe\u0301 at 12"):
        assert again.encode(text) == words.encode(text)
        assert again.encode(text)[:: len(words.encode(text)) - 1] == [0, 2]
