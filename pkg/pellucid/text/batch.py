"""The result of tokenizing: lists or tensors by name, and how rows become a rectangle."""

from __future__ import annotations

from collections import UserDict
from typing import Any

FIELDS = ("input_ids", "token_type_ids", "attention_mask")
# Files that know no limit write a huge number instead.
UNLIMITED = 10**9


class BatchEncoding(UserDict):
    """A dict of ``input_ids``, ``attention_mask`` and, for models that use them, ``token_type_ids``.

    Values are lists of ints, lists of such lists, or tensors; they can also be reached as attributes, and
    ``model(**batch)`` works.

    Example:
        >>> batch = tokenizer(["Hi", "Hello there"], padding=True, return_tensors="pt")
        >>> batch.input_ids.shape
    """

    def __getattr__(self, name: str) -> Any:
        if name == "data":
            raise AttributeError(name)  # not yet set: while copying and unpickling
        try:
            return self.data[name]
        except KeyError:
            raise AttributeError(
                f"BatchEncoding has no {name!r}; it has {', '.join(self.data)}. Ask the "
                "tokenizer to return it."
            ) from None

    def to(self, device: Any) -> BatchEncoding:
        """Move every tensor to a device; lists stay as they are. Returns this object."""
        self.data = {
            name: value.to(device) if hasattr(value, "to") else value for name, value in self.data.items()
        }
        return self


def fill_up(
    tokenizer: Any,
    rows: dict[str, list[list[int]]],
    padding: bool | str,
    limit: int,
    multiple: int | None,
    side: str | None,
) -> None:
    """Extend rows as the arguments of `Tokenizer.pad` say.

    Raises:
        ValueError: one is not known, a length is needed, or the tokenizer has no token to fill with.
    """
    if padding not in (True, "longest", "max_length"):
        raise ValueError(
            f'tokenizer: padding={padding!r} is not known. Pass True, "longest", "max_length" or False.'
        )
    side = side or tokenizer.padding_side
    if side not in ("left", "right"):
        raise ValueError(f'tokenizer: padding_side={side!r} is not known. Pass "left" or "right".')
    if tokenizer.pad_token_id is None:
        raise ValueError(
            "tokenizer: this tokenizer has no token to fill with. Set one: tokenizer.pad_token = "
            "tokenizer.eos_token."
        )
    if padding == "max_length" and limit >= UNLIMITED:
        raise ValueError('tokenizer: padding="max_length" needs a length here. Pass max_length.')
    pad(
        rows,
        length=limit if padding == "max_length" else None,
        multiple=multiple,
        side=side,
        fill={"input_ids": tokenizer.pad_token_id, "token_type_ids": 0, "attention_mask": 0},
    )


def pad(
    rows: dict[str, list[list[int]]],
    *,
    length: int | None,
    multiple: int | None,
    side: str,
    fill: dict[str, int],
) -> None:
    """Extend all rows in place to one length.

    Args:
        rows: equally many lists per field.
        length: the length to reach; the longest row's if None. Longer rows stay as they are.
        multiple: round the length up to a multiple of this.
        side: ``"right"`` or ``"left"``, where the filling goes.
        fill: the value for each field.
    """
    if length is None:
        length = max((len(row) for row in rows["input_ids"]), default=0)
    if multiple:
        length += -length % multiple
    for name, field in rows.items():
        for i, row in enumerate(field):
            filling = [fill[name]] * (length - len(row))
            field[i] = row + filling if side == "right" else filling + row


def convert(fields: dict[str, Any], form: str | None) -> dict[str, Any]:
    """Turn lists into ``"pt"`` (int64 tensors on the default device) or ``"np"`` (int64 arrays).

    Raises:
        ValueError: the rows have different lengths, or the form is not known.
    """
    if form is None:
        return fields
    lengths = {len(row) for row in fields["input_ids"] if isinstance(row, list)}
    if len(lengths) > 1:
        raise ValueError(
            f"tokenizer: sequences of {min(lengths)} to {max(lengths)} tokens do not fit into one tensor. "
            "Pass padding=True, truncation=True with max_length, or both."
        )
    if form == "pt":
        import pellucid

        return {name: pellucid.tensor(value, dtype=pellucid.int64) for name, value in fields.items()}
    if form == "np":
        import numpy

        return {name: numpy.array(value, dtype=numpy.int64) for name, value in fields.items()}
    raise ValueError(f'tokenizer: return_tensors={form!r} is not known. Pass "pt", "np" or None.')


def texts_and_pairs(text: Any, pair: Any) -> tuple[list[str], list[str | None]]:
    """Equally many first and second texts, from one of each or lists of them.

    Raises:
        TypeError: something is not text.
        ValueError: there are not as many second texts as first ones.
    """
    texts = [text] if isinstance(text, str) else text
    pairs = [pair] if isinstance(pair, str) else pair
    for name, items in (("text", texts), ("text_pair", pairs)):
        if items is None and name == "text_pair":
            continue
        if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
            raise TypeError(
                f"tokenizer: {name} is a {type(items).__name__}, not a str or a list of str. Convert it to "
                "text first."
            )
    if pairs is not None and len(pairs) != len(texts):
        raise ValueError(
            f"tokenizer: {len(texts)} texts but {len(pairs)} in text_pair. Pass one second text for each "
            "first."
        )
    return list(texts), list(pairs) if pairs is not None else [None] * len(texts)


def to_list(ids: Any) -> Any:
    """Ids as plain ints: from a tensor, an array, or any sequence of them."""
    ids = ids.tolist() if hasattr(ids, "tolist") else ids
    if isinstance(ids, int):
        return ids
    return [to_list(item) for item in ids]
