"""The tree of tokens: every continuation that was tried, with what was changed while each token was read."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..plan import Plan


@dataclass(eq=False)
class TokenNode:
    """One token of a tree.

    Args:
        number: its place in the order in which tokens were added.
        id: of the token.
        parent: the token before it; None for the first.
        plan: under which the model reads it.

    Attributes:
        children: tokens that were tried after it, oldest first.
        candidates: the likeliest next ids and their probabilities, once they were asked for.
    """

    number: int
    id: int
    parent: TokenNode | None = field(default=None, repr=False)
    plan: Plan = field(default_factory=Plan, repr=False)
    children: list[TokenNode] = field(default_factory=list, repr=False)
    candidates: list[tuple[int, float]] = field(default_factory=list, repr=False)

    @property
    def path(self) -> list[TokenNode]:
        """The tokens up to this one, from the first."""
        found, node = [], self
        while node is not None:
            found.append(node)
            node = node.parent
        return found[::-1]

    @property
    def position(self) -> int:
        """Its place in the sequence."""
        return len(self.path) - 1

    def child(self, token: int, plan: Plan) -> TokenNode | None:
        """The child with that id that is read under that plan."""
        return next((c for c in self.children if c.id == token and c.plan is plan), None)


class TokenTree:
    """All tokens of a session, by number."""

    def __init__(self):
        self.nodes: list[TokenNode] = []

    def add(self, token: int, parent: TokenNode | None, plan: Plan) -> TokenNode:
        """Put a token behind another one."""
        node = TokenNode(len(self.nodes), token, parent, plan)
        self.nodes.append(node)
        if parent is not None:
            parent.children.append(node)
        return node

    def __iter__(self) -> Iterator[TokenNode]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)

    def __getitem__(self, number: int) -> TokenNode:
        return self.nodes[number]

    def leaves(self) -> list[TokenNode]:
        """Tokens that nothing follows, in the order in which they were added."""
        return [node for node in self.nodes if not node.children]

    def rows(self) -> list[dict[str, Any]]:
        """The tree as plain values: number, id and parent's number (-1 for the first) of each token."""
        return [
            {"number": n.number, "id": n.id, "parent": n.parent.number if n.parent else -1}
            for n in self.nodes
        ]
