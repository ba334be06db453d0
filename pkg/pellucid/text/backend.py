"""What a tokenizer library must do; `native` has Hugging Face's one in Rust, `page` theirs in JavaScript."""

from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class AddedToken:
    """A token that is matched in the text itself, before the vocabulary's own rules cut it."""

    id: int | None
    content: str
    special: bool = True
    single_word: bool = False
    lstrip: bool = False
    rstrip: bool = False
    normalized: bool = False


@dataclass(frozen=True)
class Limit:
    """How many tokens an encoding may have, special ones included, and which side gives way."""

    tokens: int
    side: str


class Backend(Protocol):
    """One loaded ``tokenizer.json``."""

    added: dict[int, AddedToken]

    def encode(
        self, text: str, pair: str | None, *, add_special_tokens: bool, limit: Limit | None
    ) -> tuple[list[int], list[int]]:
        """Ids of a text and of a second one that belongs to it, and which of the two each id came from."""
        ...

    def offsets(self, text: str, pair: str | None) -> list[tuple[int, int]] | None:
        """Where each id of an encoding, special ones included, begins and ends in its text; None where the
        library does not tell."""
        ...

    def decode(self, ids: list[int], *, skip_special_tokens: bool) -> str:
        """Text of the ids; ids outside the vocabulary have none."""
        ...

    def token_to_id(self, token: str) -> int | None: ...

    def id_to_token(self, index: int) -> str | None: ...

    def vocabulary(self, *, with_added_tokens: bool) -> dict[str, int]: ...

    def size(self, *, with_added_tokens: bool) -> int: ...


class Template(Protocol):
    """One compiled chat template."""

    def render(self, values: dict[str, Any]) -> str:
        """Text of the template with these names filled in."""
        ...


def too_short(limit: Limit, special: int) -> ValueError:
    """The error of a limit that has no room for the special tokens alone."""
    return ValueError(
        f"tokenizer: max_length={limit.tokens} leaves no room beside {special} special tokens. "
        "Pass a larger max_length, or add_special_tokens=False."
    )
