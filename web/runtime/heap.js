// The stream as Pyodide drives it: addresses in the wasm heap become views. A view lives for one call, since the heap
// moves when it grows.

import { Kept } from "./kept.js";
import { STATUS_BYTES } from "./commands.js";
import { Stream } from "./stream.js";
import { Waiting } from "./waiting.js";

export class HeapStream {
  /** Open a stream for the Pyodide whose Emscripten module is `heap`. */
  static async open(heap, defaultLimits) {
    const [stream, kept] = await Promise.all([Stream.open({ defaultLimits }), Kept.open()]);
    return new HeapStream(stream, heap, kept);
  }

  constructor(stream, heap, kept) {
    this.stream = stream;
    this.heap = heap;
    this.kept = kept;
    this.decoder = new TextDecoder();
    this.waiting = Waiting.of(heap);
    stream.readback.nudger.meanwhile = (now) => this.waiting.look(now);
  }

  /** `Stream.pipeline` of a source that is UTF-8 at an address. */
  pipeline(source, sourceBytes, bindings, paramsBytes, immediate, label) {
    return this.stream.pipeline(this.#text(source, sourceBytes), bindings, paramsBytes, immediate, label);
  }

  pipelineLater(source, sourceBytes, bindings, paramsBytes, immediate, label, compact) {
    const text = this.#text(source, sourceBytes);
    return this.stream.pipelineLater(text, bindings, paramsBytes, immediate, label, compact);
  }

  launch(pipeline, params, paramsBytes, patches, patchCount, x, y, z, turn) {
    return this.stream.launch(
      pipeline,
      this.#bytes(params, paramsBytes),
      this.#words(patches, patchCount),
      x,
      y,
      z,
      turn,
    );
  }

  submit(address, count, held) {
    this.stream.submit(this.#words(address, count), held);
  }

  /** `data`: a Python object with a contiguous buffer. */
  write(slot, nbytes, offset, data) {
    const buffer = data.getBuffer("u8");
    try {
      this.stream.write(slot, nbytes, offset, buffer.data);
    } finally {
      buffer.release();
    }
  }

  /** Let Python's `wait` wait until a read can be taken. */
  holdArrival(ticket) {
    this.waiting.hold(this.stream.arrival(ticket));
  }

  /** Let it wait until all submitted work is done. */
  holdDone() {
    this.waiting.hold(this.stream.synchronize());
  }

  take(ticket, address, nbytes, status) {
    return this.stream.take(ticket, this.#bytes(address, nbytes), this.#words(status, STATUS_BYTES / 4));
  }

  failure() {
    return this.stream.failure() ?? undefined;
  }

  #text(address, count) {
    return this.decoder.decode(this.#bytes(address, count));
  }

  #bytes(address, count) {
    return new Uint8Array(this.heap.HEAPU8.buffer, address, count);
  }

  #words(address, count) {
    return new Uint32Array(this.heap.HEAPU8.buffer, address, count);
  }
}
