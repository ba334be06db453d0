"""Watches, from inside a page, how much memory downloads hold; what reads them is not asked."""

from typing import Any

# A buffer that a stream's reader or a Blob hands out counts until it is lent to the next read, sent away or
# taken by the garbage collector. It is never asked for itself, since that would keep it alive. Memory that is
# lent to a read counts while the read waits, and for good where the read keeps it.
WATCH = """
(() => {
  const held = { now: 0, highest: 0, all: 0, reads: 0 };
  const tokens = new WeakMap();
  const registry = new FinalizationRegistry((token) => (held.now -= token.bytes));
  function grow(bytes) {
    held.now += bytes;
    held.highest = Math.max(held.highest, held.now);
  }
  function arrived(buffer, bytes) {
    const token = { bytes: buffer.byteLength };
    tokens.set(buffer, token);
    registry.register(buffer, token, token);
    grow(token.bytes);
    held.all += bytes;
    held.reads++;
  }
  function left(buffer) {
    const token = tokens.get(buffer);
    if (token === undefined) return;
    tokens.delete(buffer);
    registry.unregister(token);
    held.now -= token.bytes;
  }
  const { read } = ReadableStreamDefaultReader.prototype;
  ReadableStreamDefaultReader.prototype.read = async function () {
    const result = await read.call(this);
    if (result.value?.buffer instanceof ArrayBuffer) arrived(result.value.buffer, result.value.byteLength);
    return result;
  };
  const bytesRead = globalThis.ReadableStreamBYOBReader?.prototype.read;
  if (bytesRead !== undefined) {
    ReadableStreamBYOBReader.prototype.read = async function (view, ...options) {
      const lent = view.buffer.byteLength;
      left(view.buffer);
      grow(lent);
      const result = await bytesRead.call(this, view, ...options);
      if (result.value !== undefined) {
        held.now -= lent;
        arrived(result.value.buffer, result.value.byteLength);
      }
      return result;
    };
  }
  const whole = Blob.prototype.arrayBuffer;
  Blob.prototype.arrayBuffer = async function () {
    const buffer = await whole.call(this);
    arrived(buffer, buffer.byteLength);
    return buffer;
  };
  const { postMessage } = MessagePort.prototype;
  MessagePort.prototype.postMessage = function (message, transferred, ...rest) {
    const result = postMessage.call(this, message, transferred, ...rest);
    if (Array.isArray(transferred)) transferred.forEach(left);
    return result;
  };
  return held;
})()
"""


def watch() -> Any:
    """Begin to watch, in a page's worker.

    Returns: an object with `now`, `highest` and `all`: bytes of downloads that are held, were held at most,
        and arrived; and `reads`, in how many pieces.
    """
    from pyodide.code import run_js

    return run_js(WATCH)
