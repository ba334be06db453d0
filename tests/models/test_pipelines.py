"""Pipelines beside transformers' on the same tiny folder."""

import asyncio
from functools import cache

import numpy as np
import pytest
import tokenizers
import transformers

import pellucid
from models.tiny import VOCABULARY, made, made_encoder, made_seq2seq, saved

WORDS = [
    "the",
    "cat",
    "sat",
    "on",
    "a",
    "mat",
    "un",
    "##happy",
    "##ly",
    "dog",
    ",",
    ".",
    "?",
    "what",
    "did",
    "eat",
    "it",
    "was",
    "and",
    "ran",
    "in",
    "paris",
    "london",
]
SPECIAL = ["[UNK]", "[PAD]", "</s>", "[CLS]", "[SEP]", "[MASK]"]


def tokenizer() -> transformers.PreTrainedTokenizerFast:
    """WordPiece, with the special ids of the tiny models."""
    words = SPECIAL + WORDS + [chr(c) for c in range(ord("a"), ord("z") + 1)]
    words += [f"[unused{k}]" for k in range(VOCABULARY - len(words))]
    vocabulary = {word: k for k, word in enumerate(dict.fromkeys(words))}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(vocabulary, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer()
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.decoder = tokenizers.decoders.WordPiece()
    framed = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 3), ("[SEP]", 4)],
    )
    made.post_processor = framed
    roles = dict(zip(["unk", "pad", "eos", "cls", "sep", "mask"], SPECIAL, strict=True))
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **{f"{role}_token": token for role, token in roles.items()},
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """(maker, arguments) -> the folder of a model with the tokenizer."""

    @cache
    def make(maker, *args) -> str:
        path = saved(maker(*args), tmp_path_factory.mktemp("model"))
        tokenizer().save_pretrained(path)
        return str(path)

    return make


def same(got, wanted) -> None:
    """Equal structure and texts; numbers within 1e-4."""
    if isinstance(wanted, dict):
        assert set(got) == set(wanted)
        for key, value in wanted.items():
            same(got[key], value)
    elif isinstance(wanted, list | tuple):
        assert len(got) == len(wanted)
        for one, other in zip(got, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, float | np.floating):
        np.testing.assert_allclose(got, wanted, atol=1e-4)
    else:
        assert got == wanted


TEXT = "the Cat sat unhappyly on a mat, and it was xyz."
MASKED = "the cat sat on a [MASK]."
LABELS = {"candidate_labels": ["dog", "mat"]}
CALLS = {
    "fill-mask": ("ForMaskedLM", [(MASKED, {}), ([MASKED, "a [MASK] ate [MASK]"], {"top_k": 2}),
                                  (MASKED, {"targets": ["cat", "dog"]})]),
    "text-classification": ("ForSequenceClassification", [
        (TEXT, {}), ([TEXT, "a cat"], {}), (TEXT, {"top_k": None}), ([TEXT], {"top_k": 2}),
        ({"text": TEXT, "text_pair": "it ran"}, {"function_to_apply": "sigmoid"}),
    ]),
    "zero-shot-classification": ("ForSequenceClassification", [(TEXT, LABELS), ([TEXT, "a dog"], LABELS),
                                                               (TEXT, {**LABELS, "multi_label": True})]),
    "token-classification": ("ForTokenClassification", [(TEXT, {})] + [
        (TEXT, {"aggregation_strategy": kind}) for kind in ("simple", "first", "average", "max")
    ] + [([TEXT, "a dog"], {"ignore_labels": ["LABEL_1"]})]),
    "feature-extraction": ("Model", [("a cat", {}), (["a cat", TEXT], {})]),
}  # fmt: skip


@pytest.mark.parametrize("task", CALLS)
def test_results_are_those_of_transformers(task, folder):
    head, calls = CALLS[task]
    path = folder(made_encoder, "bert", head)
    theirs = transformers.pipeline(task, path, tokenizer=transformers.AutoTokenizer.from_pretrained(path))
    mine = pellucid.pipeline(task, path, device="cpu")
    for given, settings in calls:
        same(mine(given, **settings), theirs(given, **settings))


def test_texts_that_are_written_are_those_of_transformers(folder):
    path = folder(made, "llama")
    theirs, mine = (p.pipeline("text-generation", path, device="cpu") for p in (transformers, pellucid))
    settings = {"max_new_tokens": 5, "do_sample": False}
    for given in ("the cat", ["the cat", "a dog"]):
        same(mine(given, **settings), theirs(given, **settings))
    path = folder(made_seq2seq, "bart")
    model = transformers.AutoModelForSeq2SeqLM.from_pretrained(path)
    made_tokenizer = transformers.AutoTokenizer.from_pretrained(path)
    ids = made_tokenizer(TEXT, return_tensors="pt", return_token_type_ids=False)
    wanted = made_tokenizer.decode(model.generate(**ids, **settings)[0], skip_special_tokens=True)
    names = {"text2text": "generated", "summarization": "summary", "translation_en_to_fr": "translation"}
    for task, key in names.items():
        task += "-generation" if task == "text2text" else ""
        assert pellucid.pipeline(task, path, device="cpu")(TEXT, **settings) == [{f"{key}_text": wanted}]


def test_answers_are_parts_of_the_context(folder):
    path = folder(made_encoder, "bert", "ForQuestionAnswering")
    pipe = pellucid.pipeline("question-answering", path, device="cpu")
    question = "what did the cat eat?"
    best = pipe(question=question, context=TEXT, top_k=3, align_to_words=False)
    assert TEXT[best[0]["start"] : best[0]["end"]] == best[0]["answer"]
    # The same by the definition: over all pairs of ends in the context, not too far from each other.
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(path)
    encoded = transformers.AutoTokenizer.from_pretrained(path)(
        question, TEXT, return_tensors="pt", return_offsets_mapping=True, return_token_type_ids=True
    )
    offsets = encoded.pop("offset_mapping")[0].tolist()
    out = model(**encoded)
    own = [k for k, of in enumerate(encoded.sequence_ids()) if of == 1]
    start, end = (
        x[0].softmax(-1).detach().numpy() for x in (out.start_logits[:, own], out.end_logits[:, own])
    )
    scores = {(a, b): start[a] * end[b] for a in range(len(own)) for b in range(a, min(a + 15, len(own)))}
    a, b = max(scores, key=scores.__getitem__)
    assert (best[0]["start"], best[0]["end"]) == (offsets[own[a]][0], offsets[own[b]][1])
    np.testing.assert_allclose(best[0]["score"], scores[a, b], atol=1e-4)
    whole = pipe({"question": question, "context": TEXT})
    assert set(whole) == set(best[0])
    assert not TEXT[whole["end"] :][:1].isalpha()


def test_a_pipeline_is_awaited_and_takes_a_loaded_model(folder):
    path = folder(made_encoder, "bert", "ForMaskedLM")

    async def run():
        pipe = await pellucid.pipeline_async("fill-mask", path, device="cpu")
        return pipe, await pipe.run_async(MASKED)

    pipe, found = asyncio.run(run())
    assert pellucid.pipeline("fill-mask", pipe.model, pipe.tokenizer)(MASKED) == found


def test_wrong_calls_say_what_to_do(folder):
    path = folder(made_encoder, "bert", "ForMaskedLM")
    pipe = pellucid.pipeline("fill-mask", path, device="cpu")
    error = pellucid.errors.ArgumentError
    with pytest.raises(error, match="task 'sing' is not known"):
        pellucid.pipeline("sing", path)
    with pytest.raises(error, match="give tokenizer="):
        pellucid.pipeline("fill-mask", pipe.model)
    with pytest.raises(error, match="the text has no"):
        pipe("no mask")
    with pytest.raises(error, match="is a int, not a str"):
        pipe(3)
