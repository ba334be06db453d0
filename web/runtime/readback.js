// Reads: a range of a buffer and the status words travel back in one mappable buffer; several may be in flight.

import { Nudger } from "./nudge.js";
import { STATUS_BYTES } from "./commands.js";

const POOLED_LIMIT = 16 << 20;
const KEPT_BUFFERS = 8;

/** The status words in the first `head` bytes of what a read brought, or null where they say nothing. */
function saidIn(range, head) {
  const words = new Uint32Array(range, 0, head / 4);
  return head > 0 && words[0] !== 0 ? words : null;
}

/** Mappable buffers and the reads that wait in them. */
export class Readback {
  constructor(device, faults) {
    this.device = device;
    this.faults = faults;
    this.idle = [];
    this.reads = new Map();
    this.nextTicket = 1;
    this.unreported = null;
    this.nudger = new Nudger(device);
  }

  /** Encode the copies of `nbytes` at `offset` of `source`, and of `status` where it may say something. */
  encode(encoder, source, offset, nbytes, status) {
    const begin = offset - (offset % 4);
    const copied = Math.ceil((offset + nbytes) / 4) * 4 - begin;
    const head = status === null ? 0 : STATUS_BYTES;
    const mapped = head + copied;
    const buffer = this.#buffer(mapped);
    if (status !== null) {
      encoder.copyBufferToBuffer(status, 0, buffer, 0, STATUS_BYTES);
      // A status is reported once, by the first read behind the mistake.
      encoder.clearBuffer(status, 0, STATUS_BYTES);
    }
    if (copied > 0) encoder.copyBufferToBuffer(source, begin, buffer, head, copied);
    const at = head + offset - begin;
    return { buffer, mapped, head, at, nbytes };
  }

  /** A ticket for a read that is still to begin. */
  reserve() {
    const ticket = this.nextTicket++;
    const read = { buffer: null, mapped: 0, head: 0, at: 0, nbytes: 0, failure: null, dropped: false };
    read.arrival = new Promise((resolve) => (read.arrive = resolve));
    this.reads.set(ticket, read);
    return ticket;
  }

  /** Ask for what `encode` copied, once that was submitted; `isDone`: all work before it is. */
  begin(ticket, encoded, isDone) {
    const read = Object.assign(this.reads.get(ticket), encoded);
    this.#arrive(read, isDone).then(read.arrive);
  }

  /** Say why a read cannot begin to whoever takes it. */
  fail(ticket, error) {
    const read = this.reads.get(ticket);
    read.failure = error;
    read.arrive();
  }

  /** Forget a ticket that nobody got. */
  release(ticket) {
    this.reads.delete(ticket);
  }

  /** Resolves when the read can be taken, also where it failed: whoever takes it is told. */
  arrival(ticket) {
    return this.reads.get(ticket)?.arrival ?? Promise.resolve();
  }

  /** Move what a read brought into `bytes`, and into `status` if that says something; whether it does. */
  take(ticket, bytes, status) {
    const read = this.reads.get(ticket);
    if (read === undefined) this.faults.alive(); // closing ended it
    const { buffer, mapped, head, at, nbytes, failure } = read;
    if (failure !== null) {
      this.reads.delete(ticket);
      throw failure;
    }
    const range = buffer.getMappedRange(0, mapped);
    let said = saidIn(range, head);
    if (said === null) {
      said = this.unreported;
      this.unreported = null;
    }
    if (said !== null) status.set(said);
    bytes.set(new Uint8Array(range, at, nbytes));
    this.#recycle(ticket);
    return said !== null;
  }

  /** End a read that nobody takes, now or when it arrives; what its status says goes to the next one. */
  drop(ticket) {
    const read = this.reads.get(ticket);
    if (read === undefined || read.dropped) return;
    read.dropped = true;
    const end = () => {
      if (read.failure !== null) {
        this.reads.delete(ticket);
        return;
      }
      const said = saidIn(read.buffer.getMappedRange(0, read.mapped), read.head);
      if (said !== null) this.unreported ??= said.slice();
      this.#recycle(ticket);
    };
    read.arrival.then(end);
  }

  /** Waits for `promise` and for the answers of all earlier error scopes; a lost device is an error. */
  async finished(promise, isDone = false) {
    this.nudger.watch(promise, isDone);
    try {
      await promise;
    } catch (error) {
      // The reason of a loss arrives separately, a moment later.
      await Promise.race([this.device.lost, new Promise((resolve) => setTimeout(resolve, 100))]);
      this.faults.alive();
      await this.faults.settled();
      const said = this.faults.take(); // why it could not be, such as a lack of memory
      throw said === null ? error : new Error(said);
    }
    if (this.faults.waiting.size > 0) await this.faults.settled();
    this.faults.alive();
  }

  close() {
    for (const buffer of this.idle) buffer.destroy();
    for (const [ticket, { buffer }] of this.reads) {
      if (buffer === null) this.fail(ticket, new Error("closed: this device was closed"));
      else buffer.destroy();
    }
    this.idle.length = 0;
    this.reads.clear();
  }

  async #arrive(read, isDone) {
    try {
      await this.finished(read.buffer.mapAsync(GPUMapMode.READ, 0, read.mapped), isDone);
    } catch (error) {
      read.failure = error;
      read.buffer.destroy();
    }
  }

  #recycle(ticket) {
    const { buffer } = this.reads.get(ticket);
    this.reads.delete(ticket);
    buffer.unmap();
    if (buffer.size > POOLED_LIMIT || this.idle.length >= KEPT_BUFFERS) buffer.destroy();
    else this.idle.push(buffer);
  }

  #buffer(nbytes) {
    const size = Math.max(256, 2 ** Math.ceil(Math.log2(nbytes)));
    const found = this.idle.findLastIndex((buffer) => buffer.size === size);
    if (found >= 0) return this.idle.splice(found, 1)[0];
    const exact = nbytes > POOLED_LIMIT ? Math.ceil(nbytes / 4) * 4 : size;
    const usage = GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST;
    return this.device.createBuffer({ label: "read", size: exact, usage });
  }
}
