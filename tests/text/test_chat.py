"""Chat templates render as transformers renders them."""

import pytest
from transformers.utils.chat_template_utils import render_jinja_template

from pellucid.text import AutoTokenizer
from text.vocabularies import folder

CHAT = [
    {"role": "user", "content": "Hi <b>&"},
    {"role": "assistant", "content": "Hello "},
    {"role": "user", "content": "日本?"},
]
TOOL = {
    "type": "function",
    "function": {
        "name": "add",
        "description": "Adds 'two' numbers",
        "parameters": {"type": "object", "properties": {"a": {"type": "number"}}},
    },
}
TOOL_CHAT = [
    {"role": "system", "content": "Be short."},
    {"role": "user", "content": "1+1?"},
    {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}],
    },
    {"role": "tool", "name": "add", "content": "2"},
]


def expected(tokenizer, chat, **options):
    (text,), _ = render_jinja_template(
        [chat], chat_template=tokenizer.chat_template, **tokenizer.special_tokens_map, **options
    )
    return text


@pytest.fixture(scope="module", params=["smollm", "qwen2_5", "llama3", "mistral_nemo"])
def tokenizer(request):
    if request.param == "smollm":
        return request.getfixturevalue("smollm")
    return AutoTokenizer.from_pretrained(str(folder(request.param)))


@pytest.mark.parametrize("prompt", [False, True])
def test_text_equals_transformers(tokenizer, prompt):
    """P-052, P-100: templates write what they write in transformers."""
    text = tokenizer.apply_chat_template(CHAT, tokenize=False, add_generation_prompt=prompt)
    assert text == expected(tokenizer, CHAT, add_generation_prompt=prompt)


def test_tools_equal_transformers(qwen):
    text = qwen.apply_chat_template(TOOL_CHAT, tools=[TOOL], tokenize=False, add_generation_prompt=True)
    assert text == expected(qwen, TOOL_CHAT, tools=[TOOL], add_generation_prompt=True)


def test_last_message_is_continued_as_in_transformers(tokenizer):
    """P-052: what a turn adds, as in transformers."""
    chat = CHAT[:2]
    text = tokenizer.apply_chat_template(chat, tokenize=False, continue_final_message=True)
    assert text == expected(tokenizer, chat, continue_final_message=True)
    assert text.endswith("Hello " if text.endswith(" ") else "Hello")
    assert chat[-1]["content"] == "Hello "


def test_ids_are_those_of_the_text(smollm):
    ids = smollm.apply_chat_template(CHAT[:1], add_generation_prompt=True)
    text = smollm.apply_chat_template(CHAT[:1], tokenize=False, add_generation_prompt=True)
    assert text.endswith("<|im_end|>\n<|im_start|>assistant\n")
    assert ids == smollm.encode(text, add_special_tokens=False)
    batch = smollm.apply_chat_template([CHAT[:1], CHAT], padding=True, return_tensors="np", return_dict=True)
    assert batch.input_ids.shape == batch.attention_mask.shape
    assert batch.attention_mask.sum(axis=1).tolist()[1] == batch.input_ids.shape[1]


def test_a_template_that_begins_with_bos_does_not_get_a_second_one():
    nemo = AutoTokenizer.from_pretrained(str(folder("mistral_nemo")))
    assert nemo.encode("Hi")[0] == nemo.bos_token_id
    assert nemo.apply_chat_template(CHAT[:1]).count(nemo.bos_token_id) == 1


def test_names_for_the_template_are_passed_on(smollm):
    source = "{{ enable_thinking }} {{ eos_token }} {{ messages | length }} {{ {'a': '<é>'} | tojson }}"
    text = smollm.apply_chat_template(CHAT, chat_template=source, tokenize=False, enable_thinking=False)
    assert text == 'False <|im_end|> 3 {"a": "<é>"}'


def test_loop_controls_generation_marks_and_time_work(smollm):
    source = (
        "{%- for m in messages %}{% if loop.index == 2 %}{% break %}{% endif %}"
        "{% generation %}{{ m.content }}{% endgeneration %}{% endfor %}{{ strftime_now('%Y') | length }}"
    )
    assert smollm.apply_chat_template(CHAT, chat_template=source, tokenize=False) == "Hi <b>&4"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ 'a' + messages[1].role + (1 + 2) | string + 'b' }}", "aassistant3b"),
        ("{{ 1 + 2 + 3 * (4 + 5) + [6, 7][0 + 1] }}", "37"),
        ("{{ ([1] + [2] + messages[:0])[0] }}{% if 'a' + 'b' == 'ab' %}{{ 'c' + 'd' }}{% endif %}", "1cd"),
        ("{{ " + "1+" * 20000 + "1 }}", "20001"),
    ],
)
def test_chains_of_sums(smollm, source, text):
    assert smollm.apply_chat_template(CHAT, chat_template=source, tokenize=False) == text


def test_named_templates_are_chosen_by_use(smollm):
    named = {"default": "plain", "tool_use": "tools", "rag": "documents"}
    plain, smollm.chat_template = smollm.chat_template, named
    try:
        assert smollm.apply_chat_template(CHAT, tokenize=False) == "plain"
        assert smollm.apply_chat_template(CHAT, tools=[TOOL], tokenize=False) == "tools"
        assert smollm.apply_chat_template(CHAT, chat_template="rag", tokenize=False) == "documents"
        del named["default"]
        with pytest.raises(ValueError, match="one of rag, tool_use"):
            smollm.apply_chat_template(CHAT, tokenize=False)
    finally:
        smollm.chat_template = plain


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"chat_template": "{% if %}"}, ValueError, "chat template: line 1"),
        ({"chat_template": "{{ raise_exception('only users') }}"}, ValueError, "chat template: only users"),
        ({"chat_template": "{{ messages.append(1) }}"}, ValueError, "chat template: .*unsafe"),
        ({"chat_template": "{{ ''.__class__.__mro__ }}"}, ValueError, "chat template: .*unsafe"),
        (
            {"chat_template": "nothing", "continue_final_message": True},
            ValueError,
            "leaves out the final message",
        ),
        ({"continue_final_message": True, "add_generation_prompt": True}, ValueError, "exclude each other"),
        ({"tools": [len]}, TypeError, "a tool is a builtin_function_or_method"),
    ],
)
def test_what_a_template_refuses_is_said(smollm, options, error, message):
    with pytest.raises(error, match=message):
        smollm.apply_chat_template(CHAT, **options)


def test_messages_that_are_not_dicts(smollm):
    with pytest.raises(TypeError, match="message 1 is a str"):
        smollm.apply_chat_template([CHAT[0], "hello"])


def test_a_model_that_was_not_trained_to_chat():
    tokenizer = AutoTokenizer.from_pretrained(str(folder("gpt2")))
    with pytest.raises(ValueError, match="has no chat template"):
        tokenizer.apply_chat_template(CHAT)
