"""The logit lens: what each layer of a language model would have said, had it been the last.

This is the whole idea; the page only draws. It runs in a worker, asks for every value with `await`, so that
the browser needs no way to suspend Python, and sends small messages:

    progress  {done, total, rate, remaining}   bytes, bytes per second, seconds or None
    reading   {done, total}                    tokens of the prompt
    prompt    {tokens: [{id, token}, ...]}     what the model reads first: the first tokens of the tree
    token     {number, parent, id, token,      a new token of the tree, the text that became readable with it,
               text, best}                     and what the model's own logits say: [[id, token, share], ...]
    column    {position, layers}               what each layer says there, likewise, first layer first
    part      {name, data}                     a picture that is not whole yet
"""

import asyncio
import contextlib
import dataclasses
import gc
import time
from collections.abc import Coroutine
from typing import Any

import numpy as np
from branching import plans_of, steps_of
from helpers import PromptError, Words, flat
from instruments import modules
from notebook import notebook
from pellucid_page import send
from programs import Pictures
from sums import sum_of

import pellucid as torch
from pellucid import lens, weights
from pellucid.utils import copies

LOAD = torch.AutoModelForCausalLM.from_pretrained_async
LAYERS = "model.layers.*"
CANDIDATES = 5
SHOWN = 2048  # numbers of a value that are drawn
AT_ONCE = 4  # positions of a prompt looked at together: columns come steadily, and Stop is heard soon
ROOM = 256  # by which memory for keys and values grows, so that runs of similar length share plans
PIECE = 32  # positions of a prompt read together, for the same reason


class LogitLens:
    """One model at a time, and what its layers say."""

    def __init__(self) -> None:
        self.model: Any = None
        self.tokenizer: Any = None
        self.words: Any = None  # texts of its ids
        self.cancellation = weights.Cancel()
        self.stopped = False
        self.session: Any = None
        self.begun = 0  # tokens of the prompt
        self.pictures = Pictures(self, send)

    async def load(self, source: Any, keep: bool = True) -> dict[str, Any]:
        """Stream a model's weights to the GPU, telling how far it is.

        Args:
            source: a URL, a path on this site, a hub id or a File.
            keep: write what comes from an address into the browser's own storage, for the next visit.

        Returns:
            What the page shows of the model.
        """
        self.cancellation = weights.Cancel()
        torch.settings.keep_copies = keep
        await torch.webgpu.open_async()
        with await self.unless_cancelled(weights.open_folder_async(source)) as folder:
            tokenizer = await self.unless_cancelled(torch.AutoTokenizer.from_pretrained_async(folder))
            self.forget()  # only now: a wrong address leaves the model that is there
            model = await LOAD(folder, on_progress=_tell, cancel=self.cancellation)
        self.model, self.tokenizer, self.words = model, tokenizer, Words(tokenizer)
        return {
            "layers": len(model.model.layers),
            "positions": model.config.max_position_embeddings,
            "bytes": torch.webgpu.memory_stats()["weight_bytes"],
            "chat": tokenizer.chat_template is not None,
            "device": torch.webgpu.get_device_name(),
            "map": modules(model),
        }

    async def beside(self, source: Any, address: str) -> str:
        """Load another model, which others find at the address, beside this one; what it runs on."""
        self.cancellation = weights.Cancel()
        self.leave()
        with await self.unless_cancelled(weights.open_folder_async(source)) as folder:
            words = Words(await self.unless_cancelled(torch.AutoTokenizer.from_pretrained_async(folder)))
            model = await LOAD(folder, on_progress=_tell, cancel=self.cancellation)
        self.pictures.beside(model, words, address)
        return torch.webgpu.get_device_name()

    def leave(self) -> None:
        """Let go of the other model."""
        self.pictures.leave()
        gc.collect()
        torch.webgpu.empty_cache()

    async def experiment(self) -> dict[str, Any]:
        """What a link holds: tokens behind the prompt up to here, and plans: [first position, JSON] each."""
        path = self.session.at.path
        tokens, plans = [node.id for node in path[self.begun :]], await plans_of(path)
        return {"tokens": tokens, "plans": plans, "hash": await sum_of(self.model)}

    async def follow(self, tokens: list[int], plans: list[list[Any]]) -> None:
        """Go on from the prompt with tokens, some of them and of the prompt's read under plans."""
        read = [node.id for node in list(self.session.tree)[: self.begun]]
        begins = {position: lens.Plan.from_json(text) for position, text in plans}
        first, before = min([self.begun, *begins]), self.session.plan
        self.session.go(first - 1)
        text = self.tokenizer.stream(skip_special_tokens=True)
        try:
            for position, token in list(enumerate([*read, *tokens]))[first:]:
                self.session.plan = begins.get(position, self.session.plan)
                best = await self.session.candidates_async(CANDIDATES)
                node = await self.session.token_async(token)
                piece = text.push(token) if position >= self.begun else ""
                self.tell(node, piece, self.words.candidates(best))
                await self.column()
        finally:
            self.session.plan = before

    async def branches(self) -> str:
        """The program that makes the tree of tokens."""
        steps, read = await steps_of(self.session, self.begun), list(self.session.tree)[: self.begun]
        return self.pictures.write("branches", [n.id for n in read], steps, self.session.at.number)

    async def notebook(self, title: str, source: str) -> str:
        """The tree and what was drawn, as a notebook, for whoever finds the model at the source."""
        await self.branches()
        return notebook(self.pictures, title, source)

    async def copies(self) -> list[dict[str, Any]]:
        """The files that are kept in this browser, once those that were just read are whole."""
        await copies.finish_async()
        return [dataclasses.asdict(one) for one in await copies.list_async()]

    async def remove(self, url: str) -> list[dict[str, Any]]:
        """Remove a kept file; the others."""
        await copies.remove_async(url)
        return await self.copies()

    def cancel(self) -> None:
        """End the load that is under way."""
        self.cancellation.cancel()

    async def unless_cancelled(self, work: Coroutine[Any, Any, Any]) -> Any:
        """The result of work that takes no token, such as asking a server that does not answer."""
        task = asyncio.ensure_future(work)

        def give_up() -> None:
            task.cancel()

        forget = self.cancellation.watch(give_up)
        try:
            return await task
        except asyncio.CancelledError:
            self.cancellation.check()
            raise
        finally:
            forget()

    def forget(self) -> None:
        """Let go of the model and give its memory back to the system."""
        self.model = self.tokenizer = self.words = self.session = None
        self.pictures = Pictures(self, send)
        gc.collect()
        torch.webgpu.empty_cache()

    def reset(self) -> None:
        """Begin anew with the device, after it was lost with all that was on it."""
        self.model = self.tokenizer = self.words = self.session = None
        self.pictures = Pictures(self, send)
        torch.webgpu.reset()

    async def generate(self, prompt: str, chat: bool, count: int) -> dict[str, Any]:
        """Continue a prompt, and look through the lens at every position that the model reads.

        Args:
            prompt: the text.
            chat: it is a user's message to a chat model, rather than text to continue.
            count: how many tokens at most.

        Returns:
            How it went: tokens, seconds, and why it ended.
        """
        if chat:
            message = {"role": "user", "content": prompt}
            ids = self.tokenizer.apply_chat_template([message], add_generation_prompt=True)
        else:
            ids = self.tokenizer.encode(prompt)
        if not ids:
            raise PromptError("The prompt has no tokens: the model's tokenizer drops all of its signs.")
        end, most = len(ids) + count, self.model.config.max_position_embeddings
        if end - 1 > most:  # before anything is read; the last token is never read
            raise torch.errors.DimensionError(
                f"The prompt's {len(ids)} tokens and {count} new ones are more than the model's {most}. "
                "Shorten the prompt, or ask for fewer new tokens."
            )
        send("prompt", {"tokens": [{"id": i, "token": self.words.name(i)} for i in ids]})

        self.stopped = False
        session, given = lens.Session(self.model, ids), len(ids)
        began, made, position = time.monotonic(), 0, 0
        text = self.tokenizer.stream(skip_special_tokens=True)
        cache = self.model.new_cache(1, min(most, -(-end // ROOM) * ROOM))
        # What layers return is kept while the model runs: pieces of the prompt, then a position a token.
        watched = lens.watch(self.model, LAYERS, top_k=CANDIDATES, positions=-1)
        with watched as seen, lens.capture(self.model, "lm_head") as said:
            position = await self.read(ids, end - 1, cache, seen)
            rest = ids[position:]
            tokens = self.model.stream_async(rest, max_new_tokens=count, past_key_values=cache)
            async with contextlib.aclosing(tokens):
                while not self.stopped and (token := await anext(tokens, None)) is not None:
                    if self.stopped:  # while the prompt was read
                        break
                    made += 1
                    # Now, for where a run fails the one before stays.
                    self.session, self.begun = session, given
                    best = torch.softmax(said["lm_head"][0, -1], -1).topk(CANDIDATES)
                    ids, probabilities = await best.indices.tolist_async(), await best.values.tolist_async()
                    best = self.words.candidates(zip(ids, probabilities, strict=True))
                    self.tell(await self.session.token_async(token), text.push(token), best)
                    position = await self.look(seen, position, given + made - 1)
                    if self.stopped:
                        break
        reason = "stopped" if self.stopped else "length" if made == count else "end"
        return {"tokens": made, "seconds": time.monotonic() - began, "reason": reason, "text": text.end()}

    async def read(self, ids: list[int], most: int, cache: Any, seen: lens.Seen) -> int:
        """Read a prompt but for its last piece, and send its columns; how many tokens were read.

        ``most`` are the positions of the text when all of it is there.
        """
        position, original = 0, getattr(self.model, "original_positions", None)
        if original is not None and most > original:  # past these only what was read whole goes on
            return position
        while len(ids) - position > PIECE and not self.stopped:
            piece = torch.tensor([ids[position : position + PIECE]], device=self.model.device)
            with torch.no_grad():
                self.model(piece, past_key_values=cache, logits_to_keep=1)
            position = await self.look(seen, position, position + piece.shape[1])
            send("reading", {"done": position, "total": len(ids)})
        return position

    async def look(self, seen: lens.Seen, first: int, end: int) -> int:
        """Send a column for each position from the first on, where the model has just read up to the end."""
        read = next(iter(seen.values())).shape[1]
        before = end - read  # of what was just read; a text that was read again begins before the first
        for start in range(first, end, AT_ONCE):
            if self.stopped:
                break
            stop = min(start + AT_ONCE, end)
            part = slice(start - before, stop - before)
            # The look at the last position came with the step.
            found = (
                seen.look
                if end - first == 1
                else lens.logit_lens(self.model, seen, top_k=CANDIDATES, positions=part)
            )
            layers = await found.table_async()
            for position, cells in zip(range(start, stop), zip(*layers, strict=True), strict=True):
                column = [self.words.candidates(cell) for cell in cells]
                send("column", {"position": position, "layers": column})
        return end

    def tell(self, node: Any, text: str, best: list[list[Any]]) -> None:
        """Send a new token of the tree."""
        named = {
            "number": node.number,
            "parent": node.parent.number,
            "id": node.id,
            "token": self.words.name(node.id),
        }
        send("token", named | {"text": text, "best": best, "changed": bool(node.plan.changes)})

    def go(self, number: int) -> str:
        """Return to a token of the tree; the text behind the prompt up to it."""
        self.session.go(number)
        return self.tokenizer.decode(self.session.ids[self.begun :], skip_special_tokens=True)

    async def branch(self, number: int, token: int | None, count: int) -> dict[str, Any]:
        """Go on from a token of the tree, with another one than it went on with, or with the likeliest.

        Args:
            number: of the token.
            token: id of the next one; None for the likeliest.
            count: how many tokens at most, with that one.
        """
        self.stopped = False
        self.session.go(number)
        began, made = time.monotonic(), 0
        text = self.tokenizer.stream(skip_special_tokens=True)
        for _ in range(count):
            best = await self.session.candidates_async(CANDIDATES)
            node = await self.session.token_async(best[0][0] if token is None else token)
            token, made = None, made + 1
            self.tell(node, text.push(node.id), self.words.candidates(best))
            await self.column()
            if self.stopped or node.id in self.stops():
                break
        reason = "stopped" if self.stopped else "length" if made == count else "end"
        return {"tokens": made, "seconds": time.monotonic() - began, "reason": reason, "text": text.end()}

    async def column(self) -> None:
        """Send what the layers say at the token that the session stands at."""
        look = {"points": "resid_post", "top_k": CANDIDATES, "position": -1}
        layers = await self.session.read((), look).look.table_async()
        column = [self.words.candidates(cells[-1]) for cells in layers]
        send("column", {"position": self.session.at.position, "layers": column})

    def stops(self) -> set[int]:
        """Ids that end a text."""
        return set(self.model.generation_config.stops)

    async def step(self, unit: str) -> dict[str, Any]:
        """Go on within the token that the session stands at: by a layer, or by an operation."""
        done = await self.session.step_async(unit)
        if done is self.session.paused:
            return await self.pause()
        self.tell(done, self.words.name(done.id), self.words.candidates(done.parent.candidates[:CANDIDATES]))
        await self.column()
        return await self.entered()

    async def pause(self) -> dict[str, Any]:
        """Where the session is paused: the value there, and what it would say from there."""
        pause = self.session.paused
        value = pause.value.detach().float()
        array = await value.numpy_async()
        said = []
        if value.ndim == 3 and value.shape[-1] == self.model.config.hidden_size:
            best = torch.softmax(self.model.unembed(pause.value)[0, -1].float(), -1).topk(CANDIDATES)
            ids, probabilities = await best.indices.tolist_async(), await best.values.tolist_async()
            said = self.words.candidates(zip(ids, probabilities, strict=True))
        seen = array[np.isfinite(array)]
        return {
            "address": pause.address,
            "place": pause.addresses.index(pause.address),
            "places": len(pause.addresses),
            "shape": list(array.shape),
            "values": flat(array)[:SHOWN],
            "mean": float(seen.mean()),
            "deviation": float(seen.std()),
            "least": float(seen.min()),
            "most": float(seen.max()),
            "said": said,
        }

    async def change(self, factor: float) -> dict[str, Any]:
        """Multiply the value at which the session is paused."""
        self.session.change(lambda value: value * factor)
        node = self.session.at
        self.tell(node, "", [])
        return await self.pause()

    async def resume(self) -> dict[str, Any]:
        """Read the paused token to its end; what comes next."""
        self.session.resume()
        await self.column()
        return await self.entered()

    async def entered(self) -> dict[str, Any]:
        """What follows the token that the session stands at."""
        return {
            "number": self.session.at.number,
            "best": self.words.candidates(await self.session.candidates_async(CANDIDATES)),
        }

    async def steered(self, number: int, plan: lens.Plan, count: int) -> dict[str, Any]:
        """Go on from a token under a plan."""
        before = self.session.plan
        self.session.go(number)
        try:
            self.session.plan = plan
            # The last token is read under the plan, too; those before it stay as they were.
            node = self.session.at
            if node.parent is not None:
                self.session.go(node.parent)
                self.tell(await self.session.token_async(node.id), "", [])
                await self.column()
            return await self.branch(self.session.at.number, None, count)
        finally:
            self.session.plan = before

    def stop(self) -> None:
        """End what is being generated, after the step that is under way, or the other model's load."""
        self.stopped = True
        self.cancellation.cancel()


def _tell(progress: weights.Progress) -> None:
    done, total, rate, remaining, _ = progress
    send("progress", {"done": done, "total": total, "rate": rate, "remaining": remaining})


demo = LogitLens()
