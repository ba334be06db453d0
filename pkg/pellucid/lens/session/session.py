"""Sessions: generation that can be stepped, paused in any layer, changed, and returned to at any token."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

from ...errors import ArgumentError, RangeError
from ...models.generate.step import step_of
from ...op.arguments import describe
from ...tensors.construct import tensor
from ...tensors.tensor import Tensor
from ..plan import Plan
from ..run import attach
from ..seen import Seen
from .branches import Branches
from .file import read_json, to_json
from .pause import Pause, changed
from .tree import TokenNode, TokenTree

_LOGITS = 32  # tokens whose logits are kept; those of others are computed again
UNITS = ("token", "layer", "operation")


class Session:
    """Generation as a tree of tokens, each a point to return to and to go on from in another way.

    Tokens are read when something is asked of them, under the session's plan of when they were added.
    Branches share keys and values until one of them writes its own.

    Args:
        model: a causal language model.
        ids: of the prompt, a list or (1, time).
        plan: what is seen and changed in the calls to come; it may be set to another one at any time.
        capacity: positions of a cache; a longer one is made where these are not enough.
        branches: caches that are kept. Tokens of others are read again when they are returned to.

    Attributes:
        tree: all tokens, a `TokenTree`.
        at: the token that the session stands at.
        seen: what the plan captured when tokens were last read.
        paused: the `Pause`, while a token is read in steps; else None.

    Raises:
        ArgumentError: there is no token, or the model has no layers to step through.

    Example:
        >>> import pellucid as torch
        >>> from pellucid import lens
        >>> from pellucid.models import LlamaConfig, LlamaForCausalLM
        >>> _ = torch.manual_seed(0)
        >>> sizes = dict(vocab_size=16, hidden_size=8, intermediate_size=16, num_attention_heads=2)
        >>> with torch.device("cpu"):
        ...     model = LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, **sizes))
        >>> session = lens.Session(model, [1, 2, 3])
        >>> first = [session.token().id for _ in range(3)]
        >>> _ = session.go(2)  # the end of the prompt
        >>> second = session.candidates(2)[1][0]
        >>> _ = session.token(second)
        >>> [len(leaf.path) for leaf in session.tree.leaves()]
        [6, 4]
        >>> session.step("layer").address, session.step("operation").address
        ('resid_post.0', 'resid_pre.1')
        >>> session.change(lambda x: x * 0).value.abs().sum().item()
        0.0
        >>> session.resume().shape
        Size([16])
    """

    def __init__(
        self, model: Any, ids: Any, *, plan: Plan | None = None, capacity: int = 256, branches: int = 4
    ):
        if not hasattr(model, "decoder") or not hasattr(model, "new_cache"):
            raise ArgumentError(
                f"Session: {type(model).__name__} is no causal language model of this library. Load one with "
                "AutoModelForCausalLM."
            )
        self.model = model
        self.plan = plan or Plan()
        self.tree = TokenTree()
        self.branches = Branches(model, branches, capacity)
        self.seen = Seen()
        self.paused: Pause | None = None
        self._logits: OrderedDict[TokenNode, Tensor] = OrderedDict()
        at = None
        for token in _numbers(ids):
            at = self.tree.add(token, at, self.plan)
        if at is None:
            raise ArgumentError("Session: there is no token. Give at least one.")
        self.at: TokenNode = at

    @property
    def plan(self) -> Plan:
        """What is seen and changed in the calls to come."""
        return self._plan

    @plan.setter
    def plan(self, plan: Plan) -> None:
        if not isinstance(plan, Plan):
            raise ArgumentError(f"Session: plan must be a Plan, not {describe(plan)}.")
        self._plan = plan

    @property
    def ids(self) -> list[int]:
        """The tokens up to the one it stands at."""
        return [node.id for node in self.at.path]

    @property
    def logits(self) -> Tensor:
        """Of the next token: (vocab,). Reads what was not read yet."""
        if self.at not in self._logits:
            self._read()
        return self._logits[self.at]

    def candidates(self, count: int = 10) -> list[tuple[int, float]]:
        """The likeliest next tokens and their probabilities, largest first. Waits for the device.

        Args:
            count: how many.
        """
        if len(self.at.candidates) < count:
            best = self._best(count)
            self._found(self.at, best.indices.tolist(), best.values.tolist())
        return self.at.candidates[:count]

    async def candidates_async(self, count: int = 10) -> list[tuple[int, float]]:
        """The awaitable twin of `candidates`."""
        if len((node := self.at).candidates) < count:
            best = self._best(count)
            self._found(node, await best.indices.tolist_async(), await best.values.tolist_async())
        return node.candidates[:count]

    def _best(self, count: int) -> Any:
        return self.logits.float().softmax(-1).topk(min(count, self.logits.shape[0]))

    def _found(self, node: TokenNode, ids: list[int], probabilities: list[float]) -> None:
        node.candidates = list(zip(ids, probabilities, strict=True))

    def token(self, token: int | None = None) -> TokenNode:
        """Add a token and stand at it; one that was tried here under the same plan is returned to.

        Args:
            token: its id; the likeliest if None, for which this waits.

        Raises:
            RangeError: the vocabulary has no such id.
        """
        return self._append(self.candidates(1)[0][0] if token is None else token)

    async def token_async(self, token: int | None = None) -> TokenNode:
        """The awaitable twin of `token`."""
        return self._append((await self.candidates_async(1))[0][0] if token is None else token)

    def _append(self, token: int) -> TokenNode:
        size = self.model.config.vocab_size
        if not isinstance(token, int) or not 0 <= token < size:
            raise RangeError(f"Session: {token!r} is no token; ids are integers from 0 to {size - 1}.")
        self.paused = None
        node = self.at.child(token, self.plan)
        self.at = self.tree.add(token, self.at, self.plan) if node is None else node
        return self.at

    def go(self, node: TokenNode | int) -> TokenNode:
        """Return to a token, by itself or its number. Nothing is computed yet.

        Raises:
            RangeError: the tree has no such token.
        """
        if not isinstance(node, TokenNode):
            if not isinstance(node, int) or not 0 <= node < len(self.tree):
                raise RangeError(
                    f"Session: there is no token {node!r} in the tree, which has 0 to {len(self.tree) - 1}."
                )
            node = self.tree[node]
        if node.number >= len(self.tree) or self.tree[node.number] is not node:
            raise RangeError("Session: this token is of another session's tree.")
        self.paused = None
        self.at = node
        return node

    def read(self, capture: Any, lens: Any = None) -> Seen:
        """What is seen when the token that it stands at is read again, with the same changes.

        Args:
            capture: points that are kept.
            lens: arguments of a logit lens of the same call, as a plan has them.

        Returns:
            A `Seen` of that token, or of those before it, too, where these were not read yet under one plan.
        """
        branch, rest = self._take(self.at.path)
        logits, seen = self._run(branch, rest, capture, lens)
        branch.wrote(rest)
        self._keep(self.at, logits[0])
        return seen

    def _read(self) -> None:
        branch, rest = self._take(self.at.path)
        logits, self.seen = self._run(branch, rest)
        branch.wrote(rest)
        self._keep(self.at, logits[0])

    def _take(self, path: list[TokenNode]) -> tuple[Any, list[TokenNode]]:
        branch, count = self.branches.take(path)
        return branch, path[count:]

    def _run(
        self, branch: Any, rest: list[TokenNode], capture: Any = None, lens: Any = None
    ) -> tuple[Tensor, Seen]:
        """Logits of what follows tokens, and what was seen of the last ones that have one plan."""
        logits: Tensor | None = None
        seen = Seen()
        for plan, group in groupby(rest, lambda node: node.plan):
            ids = tensor([[node.id for node in group]], device=self.model.device)
            if capture is not None:
                plan = Plan(capture, plan.patch, plan.steer, plan.ablate, lens)
            with attach(self.model, plan) as found:
                logits = step_of(self.model).logits(ids, branch.cache)
            seen = found
        assert logits is not None
        return logits, seen

    def _keep(self, node: TokenNode, logits: Tensor) -> None:
        self._logits[node] = logits
        while len(self._logits) > _LOGITS:
            self._logits.popitem(last=False)

    def step(self, unit: str = "token") -> Any:
        """Go on by a token, a layer or an operation.

        Layers and operations are those of the token that the session stands at: the first such step begins to
        read it anew, and a step behind its last value goes to the next token.

        Args:
            unit: ``token``, ``layer`` or ``operation``.

        Returns:
            The `TokenNode` of a new token, or the `Pause`.

        Raises:
            ArgumentError: there is no such unit.
        """
        return self.paused if self._stops(unit) else self.token()

    async def step_async(self, unit: str = "token") -> Any:
        """The awaitable twin of `step`."""
        return self.paused if self._stops(unit) else await self.token_async()

    def _stops(self, unit: str) -> bool:
        """Go on within the token; False where its end was reached, and a token comes next."""
        if unit not in UNITS:
            raise ArgumentError(f"Session: a step is by {', '.join(UNITS)}, not {unit!r}.")
        if unit != "token":
            if self.paused is None:
                pause = self.pause()
                if unit == "operation":
                    return True
            else:
                pause = self.paused
            while pause.advance():
                if unit == "operation" or pause.address.split(".")[0] in ("resid_post", "logits"):
                    return True
        if self.paused is not None:
            self.resume()
        return False

    def pause(self, address: str | None = None) -> Pause:
        """Read the token that the session stands at anew, up to a point.

        Args:
            address: of the point; the first one if None.

        Raises:
            ArgumentError: the model has no such point.
        """
        branch, rest = self._take(self.at.path)
        if len(rest) > 1:  # the tokens before it
            self._run(branch, rest[:-1])
            branch.wrote(rest[:-1])
        if any(branch.cache.states):  # which the layers overwrite: nobody may go on from them but this pause
            self.branches.kept.remove(branch)
        pause = Pause(self.model, self.at, branch)
        if address is not None and address != pause.address:
            pause.go(address)
        self.paused = pause
        return pause

    def change(self, value: Tensor | Callable[[Tensor], Tensor]) -> Pause:
        """Put another value where the session is paused, and stay there.

        The token becomes another one with the same id, which stands beside it in the tree.

        Args:
            value: a tensor of the same shape, or a function of the value that is there.

        Raises:
            ArgumentError: the session is not paused.
            ShapeError: the value is of another shape.
        """
        if self.paused is None:
            raise ArgumentError(
                'Session: it is not paused. Call step("layer"), step("operation") or pause().'
            )
        address = self.paused.address
        new = value if isinstance(value, Tensor) or not callable(value) else value(self.paused.value)
        plan = changed(self.model, self.at.plan, address, new)
        before = self.at
        self.at = self.tree.add(before.id, before.parent, plan)
        self.paused = None
        try:
            return self.pause(address)
        except BaseException:
            self._undo(before)
            raise

    def save(self, path: Any) -> None:
        """Write the tree with its plans to a small file of JSON; `load` reads it. Waits for the device.

        Args:
            path: of the file.
        """
        Path(path).write_text(to_json(self), encoding="utf-8")

    @classmethod
    def load(cls, path: Any, model: Any) -> Session:
        """A session as it was saved; its tokens are read again where somebody asks for them.

        Args:
            path: of the file.
            model: the one that it is about.

        Raises:
            FormatError: the file is none, or is about a model of another shape.
        """
        return read_json(cls, Path(path).read_text(encoding="utf-8"), model)

    def _undo(self, before: TokenNode) -> None:
        """Take the last token out of the tree again."""
        node = self.tree.nodes.pop()
        if node.parent is not None:
            node.parent.children.remove(node)
        self.at = before

    def resume(self) -> Tensor:
        """Read the token to its end.

        Returns:
            Logits of the next one: (vocab,).

        Raises:
            ArgumentError: the session is not paused.
        """
        if self.paused is None:
            raise ArgumentError("Session: it is not paused, so there is nothing to resume.")
        pause, self.paused = self.paused, None
        while pause.advance():
            pass
        assert pause.logits is not None
        pause.branch.wrote([pause.node])
        if pause.branch not in self.branches.kept:
            self.branches.kept.append(pause.branch)
        self._keep(pause.node, pause.logits[0, -1])
        return self._logits[pause.node]


def _numbers(ids: Any) -> list[int]:
    if isinstance(ids, Tensor):
        if ids.ndim > 2 or (ids.ndim == 2 and ids.shape[0] != 1):
            raise ArgumentError(f"Session: ids must be (time,) or (1, time), not {tuple(ids.shape)}.")
        ids = ids.reshape(-1).tolist()
    return [int(i) for i in ids]
