"""Data for training: files, packing, labels by chat templates, collators beside transformers', schedules."""

import json

import numpy as np
import pytest
import torch as pytorch
import transformers

import pellucid as torch
from pellucid.errors import ArgumentError, FormatError, RangeError, ShapeError, SourceError
from pellucid.train import (
    CsvFiles,
    DataCollatorForLanguageModeling,
    DataCollatorForSeq2Seq,
    DataCollatorWithPadding,
    ImageFolder,
    JsonLines,
    PackedDataset,
    TextFiles,
    TrainingArguments,
    conversation,
    default_data_collator,
    encode_conversation,
    get_scheduler,
    instruction_dataset,
)
from pellucid.train.optimizers import decay_parameter_names
from pellucid.train.schedules import SCHEDULES

CHAT = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


class Letters:
    """A tokenizer whose ids are the code points of letters."""

    pad_token_id, eos_token_id, mask_token_id, padding_side = 0, 1, 2, "right"
    all_special_ids = (0, 1, 2)

    def __len__(self):
        return 128

    def pad(self):
        raise NotImplementedError

    def __call__(self, text, add_special_tokens=True):
        return type("Batch", (), {"input_ids": [ord(c) for c in text]})

    def apply_chat_template(self, messages, tokenize=True, add_generation_prompt=False, **values):
        from pellucid.text import chat

        return chat.render(
            CHAT, list(messages), continue_final_message=False,
            values={"add_generation_prompt": add_generation_prompt, **values},
        )  # fmt: skip


@pytest.fixture(autouse=True)
def on_cpu():
    with torch.device("cpu"):
        yield


def test_text_files(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\r\nthree\n")
    (tmp_path / "b.txt").write_text("four")
    files = [tmp_path / "a.txt", tmp_path / "b.txt"]
    found = {by: [e["text"] for e in TextFiles(files, by)] for by in ("line", "paragraph", "document")}
    assert found["line"] == ["one", "two", "three", "four"]
    assert found["paragraph"] == ["one", "two\nthree", "four"]
    assert found["document"] == ["one\n\ntwo\r\nthree\n", "four"]
    stream = TextFiles(files)
    assert list(stream) == list(stream) == stream.list()
    with pytest.raises(SourceError, match="no such file"):
        TextFiles(tmp_path / "c.txt")
    with pytest.raises(ArgumentError, match="'line', 'paragraph' or 'document'"):
        TextFiles(files, by="word")
    (tmp_path / "c.txt").write_bytes(b"a\xff")
    with pytest.raises(FormatError, match="no utf-8 text at byte 1"):
        list(TextFiles(tmp_path / "c.txt"))


def test_json_lines_and_csv(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n{"a": "ä"}\n')
    assert JsonLines(path).list() == [{"a": 1}, {"a": "ä"}]
    path.write_text('{"a": 1}\n[2]\n')
    with pytest.raises(FormatError, match=r"line 2: is no JSON object, but \[2\]"):
        list(JsonLines(path))
    path.write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(FormatError, match="line 2: not valid JSON"):
        list(JsonLines(path))
    table = tmp_path / "a.csv"
    table.write_text('text,label\n"a, ""b""",1\nc,0\n')
    assert CsvFiles(table, types={"label": int}).list() == [
        {"text": 'a, "b"', "label": 1},
        {"text": "c", "label": 0},
    ]
    with pytest.raises(FormatError, match="has no column size; it has text, label"):
        list(CsvFiles(table, types={"size": int}))
    table.write_text("text,label\na,x\n")
    with pytest.raises(FormatError, match="line 2: label is 'x', which is no int"):
        list(CsvFiles(table, types={"label": int}))
    table.write_text("text,label\na\n")
    with pytest.raises(FormatError, match="other columns than the 2 of the first line"):
        list(CsvFiles(table))


def test_folders_of_images(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 5, 4, 3)).astype(np.uint8)
    for name, image in zip(("cat", "dog"), pixels, strict=True):
        (tmp_path / name).mkdir()
        np.save(tmp_path / name / "1.npy", image)
        (tmp_path / name / "notes.txt").write_text("no image")
    np.save(tmp_path / "dog" / "2.npy", pixels[0, :, :, 0])
    data = ImageFolder(tmp_path)
    assert data.classes == ["cat", "dog"]
    assert [data[k]["labels"] for k in range(len(data))] == [0, 1, 1]
    np.testing.assert_allclose(data[1]["pixel_values"].numpy(), pixels[1].transpose(2, 0, 1) / 255, atol=1e-7)
    assert data[2]["pixel_values"].shape == (3, 5, 4)
    assert default_data_collator([data[0], data[1]])["pixel_values"].shape == (2, 3, 5, 4)
    assert ImageFolder(tmp_path, transform=lambda a: torch.tensor(a.mean()))[0]["pixel_values"].ndim == 0
    (tmp_path / "cat" / "3.npy").write_bytes(b"broken")
    with pytest.raises(FormatError, match="no array of numpy"):
        _ = ImageFolder(tmp_path)[1]
    with pytest.raises(SourceError, match="no folder with images"):
        ImageFolder(tmp_path / "nothing")


def test_packing_loses_no_id():
    texts = ["abc", "defgh", "i", "jk"]
    rows = PackedDataset(texts, 4, Letters()).list()
    whole = [c for t in texts for c in [*map(ord, t), 1]]
    flat = [i for row in rows for i in row["input_ids"]]
    assert flat == whole[: len(flat)]
    assert len(whole) - len(flat) < 4
    assert all(len(row["input_ids"]) == 4 for row in rows)
    marked = PackedDataset([{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}], 3, eos_token_id=None)
    assert list(marked) == [{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}]
    with pytest.raises(ArgumentError, match="texts need a tokenizer"):
        list(PackedDataset(["a"], 4))
    with pytest.raises(ArgumentError, match="no text and no input_ids, but words"):
        list(PackedDataset([{"words": 1}], 4))
    with pytest.raises(RangeError, match="length must be at least 2"):
        PackedDataset([], 1)


def test_labels_are_what_the_assistant_says():
    messages = [
        {"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yo"},
        {"role": "user", "content": "?"}, {"role": "assistant", "content": "!!"},
    ]  # fmt: skip
    found = encode_conversation(Letters(), messages)
    text = "".join(map(chr, found["input_ids"]))
    assert text == "<|user|>Hi<|end|><|assistant|>Yo<|end|><|user|>?<|end|><|assistant|>!!<|end|>"
    labelled = "".join(chr(i) if i != -100 else "_" for i in found["labels"])
    assert [part for part in labelled.split("_") if part] == ["Yo<|end|>", "!!<|end|>"]
    assert all(label in (-100, i) for i, label in zip(found["input_ids"], found["labels"], strict=True))
    with pytest.raises(ArgumentError, match="says nothing"):
        encode_conversation(Letters(), messages[:1])
    with pytest.raises(ArgumentError, match="within max_length=8"):
        encode_conversation(Letters(), messages, max_length=8)


@pytest.mark.parametrize(
    "example",
    [
        {"messages": [{"role": "user", "content": "a\nb"}, {"role": "assistant", "content": "c"}]},
        {"prompt": "a\nb", "completion": "c"},
        {"instruction": "a", "input": "b", "output": "c"},
        {"question": "a\nb", "answer": "c"},
        {"conversations": [{"from": "human", "value": "a\nb"}, {"from": "gpt", "value": "c"}]},
    ],
)
def test_forms_of_instruction_data(example):
    assert conversation(example) == [
        {"role": "user", "content": "a\nb"}, {"role": "assistant", "content": "c"},
    ]  # fmt: skip
    with pytest.raises(ArgumentError, match="example 1: conversation: an example has text"):
        instruction_dataset([example, {"text": "a"}], Letters())


def test_a_template_that_rewrites_is_refused():
    class Rewriting(Letters):
        def apply_chat_template(self, messages, tokenize=True, add_generation_prompt=False, **values):
            return f"{len(messages)}" + super().apply_chat_template(messages, tokenize, add_generation_prompt)

    with pytest.raises(FormatError, match="otherwise when others follow"):
        encode_conversation(Rewriting(), conversation({"prompt": "a", "completion": "b"}))


def test_padding():
    rows = [{"input_ids": [5, 6, 7], "labels": [-100, 6, 7]}, {"input_ids": [8], "labels": [8], "text": "x"}]
    batch = DataCollatorWithPadding(Letters(), pad_to_multiple_of=4)(rows)
    assert batch["input_ids"].tolist() == [[5, 6, 7, 0], [8, 0, 0, 0]]
    assert batch["labels"].tolist() == [[-100, 6, 7, -100], [8, -100, -100, -100]]
    assert batch["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 0, 0, 0]]
    causal = DataCollatorForLanguageModeling(Letters(), mlm=False, pad_to_multiple_of=None)
    assert causal([{"input_ids": [5, 6]}, {"input_ids": [7]}])["labels"].tolist() == [[5, 6], [7, -100]]
    pairs = DataCollatorForSeq2Seq(Letters(), pad_to_multiple_of=None)
    found = pairs([{"input_ids": [5], "labels": [1, 2]}, {"input_ids": [6, 7], "labels": [3]}])
    assert found["labels"].tolist() == [[1, 2], [3, -100]]
    assert found["input_ids"].tolist() == [[5, 0], [6, 7]]
    with pytest.raises(ShapeError, match="'input_ids' has 1 to 3 items"):
        default_data_collator([{"input_ids": [5, 6, 7]}, {"input_ids": [8]}])
    with pytest.raises(ArgumentError, match="which is no number"):
        default_data_collator([{"x": [None]}])


def test_masking_for_masked_language_models():
    torch.manual_seed(1)
    rows = [{"input_ids": [1, *range(3, 120)]} for _ in range(20)]
    batch = DataCollatorForLanguageModeling(Letters())(rows)
    ids, labels = batch["input_ids"].numpy(), batch["labels"].numpy()
    chosen = labels != -100
    assert 0.11 < chosen.mean() < 0.19
    assert not chosen[:, 0].any()
    assert 0.72 < (ids[chosen] == 2).mean() < 0.88
    first = np.array([row["input_ids"] + [0] * (ids.shape[1] - 118) for row in rows])
    np.testing.assert_array_equal(ids[~chosen], first[~chosen])
    np.testing.assert_array_equal(labels[chosen], first[chosen])
    plain = Letters()
    plain.mask_token_id = None
    with pytest.raises(ArgumentError, match="no mask token"):
        DataCollatorForLanguageModeling(plain)


@pytest.mark.parametrize("name", [*SCHEDULES])
def test_schedules_are_those_of_transformers(name):
    settings = {
        "cosine_with_restarts": {"num_cycles": 2}, "cosine_with_min_lr": {"min_lr": 0.01},
        "warmup_stable_decay": {"num_decay_steps": 6, "min_lr_ratio": 0.1},
    }.get(name, {})  # fmt: skip
    rates = []
    for library, get in ((pytorch, transformers.get_scheduler), (torch, get_scheduler)):
        parameter = library.zeros(1, requires_grad=True)
        optimizer = library.optim.SGD([parameter], lr=0.3)
        schedule = get(
            name,
            optimizer,
            num_warmup_steps=4,
            num_training_steps=20,
            scheduler_specific_kwargs=dict(settings),
        )
        rates.append([])
        for _ in range(24):
            rates[-1].append(schedule.get_last_lr()[0])
            optimizer.step()
            schedule.step()
    np.testing.assert_allclose(rates[1], rates[0], atol=1e-9)


def test_a_schedule_that_is_not_there():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.3)
    with pytest.raises(RangeError, match="must be one of linear"):
        get_scheduler("rise", optimizer)


def test_what_decays():
    model = torch.nn.ModuleDict(
        {"a": torch.nn.Linear(2, 2), "ln": torch.nn.LayerNorm(2), "q_norm": torch.nn.RMSNorm(2)}
    )
    assert decay_parameter_names(model) == ["a.weight"]


def test_warmup():
    assert TrainingArguments(warmup_steps=7).warmup(100) == 7
    assert TrainingArguments(warmup_steps=0.101).warmup(100) == 11
    assert TrainingArguments(warmup_ratio=0.1).warmup(95) == 10
    assert json.loads(TrainingArguments().to_json_string())["optim"] == "adamw"
    with pytest.raises(ArgumentError, match="no setting learning"):
        TrainingArguments.from_dict({"learning": 1})
