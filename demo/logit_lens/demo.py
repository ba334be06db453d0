"""The logit lens: what each layer of a language model would have said, had it been the last.

This is the whole idea; the page only draws. It runs in a worker, asks for every value with `await`, so that
the browser needs no way to suspend Python, and sends small messages:

    progress  {done, total, rate, remaining}   bytes, bytes per second, seconds or None
    prompt    {tokens: [{id, token}, ...]}     what the model reads first
    token     {id, token, text, best}          a new token, the text that became readable with it, and what
                                               the model's own logits say: [[id, token, probability], ...]
    column    {position, layers}               what each layer says there, likewise, first layer first
"""

import asyncio
import contextlib
import functools
import gc
import time
from collections.abc import Coroutine, Iterable
from typing import Any

from pellucid_page import send

import pellucid as torch
from pellucid import lens, weights

LAYERS = "model.layers.*"
CANDIDATES = 5
AT_ONCE = 4  # positions of a prompt looked at together: columns come steadily, and Stop is heard soon


class LogitLens:
    """One model at a time, and what its layers say."""

    def __init__(self) -> None:
        self.model: Any = None
        self.tokenizer: Any = None
        self.cancellation = weights.Cancel()
        self.stopped = False

    async def load(self, source: Any) -> dict[str, Any]:
        """Stream a model's weights to the GPU, telling how far it is.

        Args:
            source: a URL, a path on this site, a hub id or a File.

        Returns:
            What the page shows of the model.
        """
        self.cancellation = weights.Cancel()
        await torch.webgpu.open_async()
        tokenizer = await self.unless_cancelled(torch.AutoTokenizer.from_pretrained_async(source))
        self.forget()  # only now: a wrong address leaves the model that is there
        model = await torch.AutoModelForCausalLM.from_pretrained_async(
            source, on_progress=_tell, cancel=self.cancellation
        )
        self.model, self.tokenizer = model, tokenizer
        self.name.cache_clear()
        return {
            "layers": len(model.model.layers),
            "positions": model.config.max_position_embeddings,
            "bytes": torch.webgpu.memory_stats()["weight_bytes"],
            "chat": tokenizer.chat_template is not None,
            "device": torch.webgpu.get_device_name(),
        }

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
        self.model = self.tokenizer = None
        self.name.cache_clear()
        gc.collect()
        torch.webgpu.empty_cache()

    def reset(self) -> None:
        """Begin anew with the device, after it was lost with all that was on it."""
        self.model = self.tokenizer = None
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
        send("prompt", {"tokens": [{"id": i, "token": self.name(i)} for i in ids]})

        self.stopped = False
        began, made, position = time.monotonic(), 0, 0
        text = self.tokenizer.stream(skip_special_tokens=True)
        tokens = self.model.stream_async(ids, max_new_tokens=count)
        # What layers return is kept while the model runs: all of the prompt first, then one position a token.
        watched = lens.watch(self.model, LAYERS, top_k=CANDIDATES, positions=-1)
        with watched as seen, lens.capture(self.model, "lm_head") as said:
            async with contextlib.aclosing(tokens):
                async for token in tokens:
                    if self.stopped:  # while the prompt was read
                        break
                    made += 1
                    best = torch.softmax(said["lm_head"][0, -1], -1).topk(CANDIDATES)
                    ids, probabilities = await best.indices.tolist_async(), await best.values.tolist_async()
                    new = {"id": token, "token": self.name(token), "text": text.push(token)}
                    send("token", new | {"best": self.named(zip(ids, probabilities, strict=True))})
                    position = await self.look(seen, position)
                    if self.stopped:
                        break
        reason = "stopped" if self.stopped else "length" if made == count else "end"
        return {"tokens": made, "seconds": time.monotonic() - began, "reason": reason, "text": text.end()}

    async def look(self, seen: lens.Seen, first: int) -> int:
        """Send a column for each position that the model has just read; the number of the next one."""
        read = next(iter(seen.values())).shape[1]
        for start in range(0, read, AT_ONCE):
            if self.stopped:
                break
            part = slice(start, min(start + AT_ONCE, read))
            # The look at one position came with the step.
            found = (
                seen.look
                if read == 1
                else lens.logit_lens(self.model, seen, top_k=CANDIDATES, positions=part)
            )
            layers = await found.table_async()
            for offset, cells in enumerate(zip(*layers, strict=True)):
                column = [self.named(cell) for cell in cells]
                send("column", {"position": first + start + offset, "layers": column})
        return first + read

    def stop(self) -> None:
        """End what is being generated, after the step that is under way."""
        self.stopped = True

    def named(self, candidates: Iterable[tuple[int, float]]) -> list[list[Any]]:
        """Ids and probabilities, with the tokens' texts between them."""
        return [[i, self.name(i), p] for i, p in candidates]

    @functools.cache  # noqa: B019  there is one object, as long as the page
    def name(self, token: int) -> str:
        """A token's own text, special or not."""
        text = self.tokenizer.decode([token])
        if "�" not in text:
            return text
        return "".join(map(_written, self.tokenizer.convert_ids_to_tokens(token) or text))


def _written(sign: str) -> str:
    """A sign of a vocabulary of bytes, as GPT-2's, where they make no whole character: its byte."""
    if "!" <= sign <= "~":
        return sign
    if "¡" <= sign <= "ÿ":
        return f"<{ord(sign):02X}>"
    unseen = [*range(33), *range(127, 161), 173]  # bytes that the vocabulary gives the signs from 256 on
    index = ord(sign) - 256
    return f"<{unseen[index]:02X}>" if 0 <= index < len(unseen) else sign


def _tell(progress: weights.Progress) -> None:
    done, total, rate, remaining, _ = progress
    send("progress", {"done": done, "total": total, "rate": rate, "remaining": remaining})


demo = LogitLens()
