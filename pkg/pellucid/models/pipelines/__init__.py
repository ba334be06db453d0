"""``pipeline(task, model)``: a model with its tokenizer, from text to a result, as in transformers."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ... import weights
from ...device.steps import later, now
from ...errors import ArgumentError
from ...nn.modules.module import Module
from ...text import AutoTokenizer
from .. import auto
from .answers import QuestionAnsweringPipeline
from .base import Pipeline
from .labels import (
    FillMaskPipeline,
    TextClassificationPipeline,
    TokenClassificationPipeline,
    ZeroShotClassificationPipeline,
)
from .texts import (
    FeatureExtractionPipeline,
    SummarizationPipeline,
    Text2TextGenerationPipeline,
    TextGenerationPipeline,
    TranslationPipeline,
)

# What makes the result of a task, and what loads its model.
TASKS: dict[str, tuple[type[Pipeline], type[auto.AutoClass]]] = {
    "feature-extraction": (FeatureExtractionPipeline, auto.AutoModel),
    "fill-mask": (FillMaskPipeline, auto.AutoModelForMaskedLM),
    "question-answering": (QuestionAnsweringPipeline, auto.AutoModelForQuestionAnswering),
    "summarization": (SummarizationPipeline, auto.AutoModelForSeq2SeqLM),
    "text-classification": (TextClassificationPipeline, auto.AutoModelForSequenceClassification),
    "text-generation": (TextGenerationPipeline, auto.AutoModelForCausalLM),
    "text2text-generation": (Text2TextGenerationPipeline, auto.AutoModelForSeq2SeqLM),
    "token-classification": (TokenClassificationPipeline, auto.AutoModelForTokenClassification),
    "translation": (TranslationPipeline, auto.AutoModelForSeq2SeqLM),
    "zero-shot-classification": (ZeroShotClassificationPipeline, auto.AutoModelForSequenceClassification),
}
_OTHER_NAMES = {"ner": "token-classification", "sentiment-analysis": "text-classification"}


def pipeline(task: str, model: Any, tokenizer: Any = None, **settings: Any) -> Any:
    """A model with its tokenizer, as a function from text to a result.

    Args:
        task: one of feature-extraction, fill-mask, question-answering, summarization, text-classification,
            text-generation, text2text-generation, token-classification, translation (or
            translation_xx_to_yy), zero-shot-classification.
        model: a folder, a URL or a hub id; or a model, with its tokenizer.
        tokenizer: a tokenizer, or where it is; where the model is if None.
        settings: ``device=``, ``dtype=`` and others as in `AutoModel.from_pretrained`.

    Returns:
        A function of a text or a list of texts, whose results have the keys of transformers'. Its
        ``run_async`` is the awaitable twin.

    Raises:
        ArgumentError: the task is not known, or there is no tokenizer.

    Source: https://huggingface.co/docs/transformers/main_classes/pipelines

    Example:
        >>> fill = pipeline("fill-mask", "bert-base-uncased")  # doctest: +SKIP
        >>> fill("Paris is the capital of [MASK].")[0]["token_str"]  # doctest: +SKIP
        'france'
    """
    return now(_steps(task, model, tokenizer, settings))


async def pipeline_async(task: str, model: Any, tokenizer: Any = None, **settings: Any) -> Any:
    """The awaitable twin of `pipeline`."""
    return await later(_steps(task, model, tokenizer, settings))


def _steps(
    task: str, model: Any, tokenizer: Any, settings: dict[str, Any]
) -> Generator[tuple, Any, Pipeline]:
    name = "translation" if task.startswith("translation_") else _OTHER_NAMES.get(task, task)
    if name not in TASKS:
        raise ArgumentError(f"pipeline: the task {task!r} is not known. There are {', '.join(TASKS)}.")
    made, loads = TASKS[name]
    if isinstance(model, Module):
        if tokenizer is None:
            raise ArgumentError("pipeline: give tokenizer= beside a model that is loaded already.")
        source = tokenizer
    elif tokenizer is None:
        names = {"revision", "filename", "token", "endpoint"} & settings.keys()
        where = {name: settings.pop(name) for name in names}
        folder: weights.Folder = yield weights, "open_folder", (model,), where
        with folder:
            source = yield AutoTokenizer, "from_pretrained", (folder,), {}
            model = yield loads, "from_pretrained", (folder,), settings
    else:
        source = tokenizer
        model = yield loads, "from_pretrained", (model,), settings
    if not hasattr(source, "encode") or isinstance(source, str):
        where = {k: settings[k] for k in ("revision", "token", "filename") if k in settings}
        source = yield AutoTokenizer, "from_pretrained", (source,), where
    return made(model, source, task)
