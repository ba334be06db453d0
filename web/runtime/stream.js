// The stream: owns the GPU device and interprets windows of records. Its interface is integers and typed arrays only.
// The records and their meaning are in docs/design.md, "The stream".

import { openDevice } from "./adapter.js";
import { Faults } from "./faults.js";
import { Groups } from "./groups.js";
import { Pipelines } from "./pipelines.js";
import { Pool } from "./pool.js";
import { Readback } from "./readback.js";

export const RUN = 0;
export const ALLOC = 1;
export const FREE = 2;
export const UPLOAD = 3;
export const COPY = 4;
export const CODE_BITS = 3;
export const STATUS_SLOT = 0;
export const STATUS_BYTES = 64;

const CODE_MASK = (1 << CODE_BITS) - 1;
// A long window goes out in pieces, so that the GPU starts early and the page's compositor gets its turn.
const MOST_DISPATCHES = 1024;
const ARENA_BYTES = 256 << 10;
const STAGING_BYTES = 256 << 10;
const WRITE_CHUNK = 16 << 20;
// Allocations from here on are watched for lack of memory; smaller ones do not fail alone.
const WATCHED_BYTES = 1 << 20;

export class Stream {
    /** Open the adapter and resolve to a stream; see `openDevice`. */
    static async open({ defaultLimits = false } = {}) {
        const { device, info } = await openDevice(defaultLimits);
        return new Stream(device, info);
    }

    constructor(device, info) {
        this.device = device;
        this.info = info;
        this.queue = device.queue;
        this.faults = new Faults(device);
        this.groups = new Groups(device, info.limits.maxStorageBufferBindingSize);
        this.pipelines = new Pipelines(device, this.faults);
        this.readback = new Readback(device, this.faults);
        this.pool = new Pool({
            create: (block) => this.#createBuffer(block),
            forget: (block) => this.groups.forget(block),
            largest: info.limits.maxBufferSize,
        });
        this.launches = [];

        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        this.status = this.pool.adopt(STATUS_BYTES, device.createBuffer({ label: "status", size: STATUS_BYTES, usage }));
        this.slots = [this.status]; // block of each slot; null before its first use and after its end
        this.sizes = [STATUS_BYTES]; // bytes of each slot; -1 where no slot is
        this.scratch = [];

        // The submission that is being encoded. Nothing is open between two calls.
        this.serial = 1;
        this.encoder = null;
        this.pass = null;
        this.encoded = 0;
        this.boundPipeline = null;
        this.boundGroup = null;
        this.lastLaunch = null;
        this.at = 0;

        this.arena = device.createBuffer({
            label: "arena",
            size: ARENA_BYTES,
            usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST,
        });
        this.arenaWords = new Uint32Array(ARENA_BYTES / 4);
        this.arenaUsed = 0;
        this.arenaGroups = new Map();
        this.arenaOffset = new Uint32Array(1);
        this.staging = device.createBuffer({
            label: "staging",
            size: STAGING_BYTES,
            usage: GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST,
        });
        this.stagingWords = new Uint32Array(STAGING_BYTES / 4);
        this.stagingUsed = 0;

        this.timing = false;
        this.counts = { dispatches: 0, submits: 0, passes: 0, uploads: 0, encodeMs: 0 };
    }

    /** Id of a compute pipeline. `bindings`: a letter per binding of group 0, "r" read, "w" read_write. */
    pipeline(source, bindings, paramsBytes, immediate, label) {
        this.faults.alive();
        this.#checkParams(paramsBytes, immediate, label);
        return this.pipelines.create(source, bindings, paramsBytes, immediate, label);
    }

    /** The same, compiled beside other work; resolves to the id. */
    async warm(source, bindings, paramsBytes, immediate, label) {
        this.faults.alive();
        this.#checkParams(paramsBytes, immediate, label);
        return this.pipelines.warm(source, bindings, paramsBytes, immediate, label);
    }

    /** Id of a launch. `params`: bytes of the parameter block; `patches`: the words of it that each run brings. */
    launch(pipelineId, params, patches, x, y, z) {
        const pipeline = this.pipelines.made[pipelineId];
        if (pipeline === undefined) throw new RangeError(`launch: pipeline ${pipelineId} does not exist`);
        const { label, paramsBytes, layout, step } = pipeline;
        if (params.length !== paramsBytes) {
            throw new RangeError(`${label}: ${params.length} bytes of parameters where the pipeline takes ${paramsBytes}`);
        }
        const most = this.info.limits.maxComputeWorkgroupsPerDimension;
        if (!(x <= most && y <= most && z <= most)) {
            throw new RangeError(`${label}: grid (${x}, ${y}, ${z}) exceeds this device's ${most} workgroups per dimension`);
        }
        const words = new Uint32Array(Math.ceil(paramsBytes / 4));
        new Uint8Array(words.buffer).set(params);
        const positions = Uint32Array.from(patches);
        if (positions.some((position) => position >= words.length)) {
            throw new RangeError(`${label}: a patch lies outside the ${words.length} words of the parameters`);
        }
        if (step > 0 && !this.arenaGroups.has(step)) this.#makeArenaGroup(step);
        const arenaGroup = this.arenaGroups.get(step) ?? null;
        const group = { blocks: [], bindGroup: null };
        const launch = { label, pipeline, count: layout.count, words, patches: positions, arenaGroup, step, x, y, z, group };
        return this.launches.push(launch) - 1;
    }

    /** Interpret a window (Uint32Array) and submit it. A record that fails is left out; the first error is thrown at the end. */
    submit(words) {
        this.faults.alive();
        const started = this.timing ? performance.now() : 0;
        let failure = null;
        for (let at = 0; at < words.length; ) {
            try {
                this.#interpret(words, at);
                at = words.length;
            } catch (error) {
                failure ??= new Error(`${this.#labelAt(words)}: ${error.message}`);
                this.#unbind();
                at = this.at + this.#lengthAt(words, this.at);
            }
        }
        this.#finish();
        this.pool.settle();
        if (this.timing) this.counts.encodeMs += performance.now() - started;
        if (failure !== null) throw failure;
    }

    /** Write bytes (Uint8Array) to a slot that no pending record touches; the slot is made when it is new. */
    write(slot, nbytes, offset, bytes) {
        this.faults.alive();
        if ((this.sizes[slot] ?? -1) < 0) this.#declare(slot, nbytes);
        const block = this.slots[slot] ?? this.#materialize(slot);
        if (offset % 4 !== 0) throw new RangeError(`write: offset ${offset} is not a multiple of 4`);
        checkRange("write", offset, bytes.length, block);
        const whole = bytes.length - (bytes.length % 4);
        for (let at = 0; at < whole; at += WRITE_CHUNK) {
            this.queue.writeBuffer(block.buffer, offset + at, bytes, at, Math.min(WRITE_CHUNK, whole - at));
        }
        if (whole < bytes.length) {
            const tail = new Uint8Array(4);
            tail.set(bytes.subarray(whole));
            this.queue.writeBuffer(block.buffer, offset + whole, tail);
        }
        this.counts.uploads++;
    }

    /** Begin a read; resolves to a ticket for `take` or `drop`. */
    async fetch(slot, offset, nbytes) {
        this.faults.alive();
        const block = this.slots[slot] ?? this.#materialize(slot);
        checkRange("read", offset, nbytes, block);
        return this.readback.fetch(block.buffer, offset, nbytes, this.status.buffer);
    }

    /** Move what a read brought into `bytes` (Uint8Array) and `status` (Uint32Array of 16). */
    take(ticket, bytes, status) {
        this.readback.take(ticket, bytes, status);
    }

    /** Let go of a read that nobody takes. */
    drop(ticket) {
        this.readback.drop(ticket);
    }

    /** Read in one go: resolves to { bytes: Uint8Array, status: Uint32Array }. */
    async read(slot, offset, nbytes) {
        const ticket = await this.fetch(slot, offset, nbytes);
        const bytes = new Uint8Array(nbytes);
        const status = new Uint32Array(STATUS_BYTES / 4);
        this.readback.take(ticket, bytes, status);
        return { bytes, status };
    }

    /** Resolves when all submitted work is done. */
    async synchronize() {
        this.faults.alive();
        await this.readback.finished(this.queue.onSubmittedWorkDone());
    }

    /** Counters, and bytes of GPU memory; live_buffers leaves out the status buffer. */
    stats() {
        const { pool, counts } = this;
        return {
            live_buffers: pool.liveBlocks,
            reserved_bytes: pool.liveBytes + pool.pooledBytes,
            pooled_bytes: pool.pooledBytes,
            dispatches: counts.dispatches,
            submits: counts.submits,
            passes: counts.passes,
            bind_groups: this.groups.count,
            bind_groups_made: this.groups.made,
            pipelines: this.pipelines.made.length,
            uploads: counts.uploads,
            encode_ms: counts.encodeMs,
        };
    }

    /** Give the free blocks back to the device. */
    trim() {
        this.pool.trim();
    }

    /** The first error that arrived since the last call, or null. */
    failure() {
        return this.faults.take();
    }

    /** Destroy the device and everything on it. */
    close() {
        this.faults.closing = true;
        this.readback.close();
        this.device.destroy();
        this.slots.length = this.sizes.length = this.launches.length = 0;
    }

    #interpret(words, start) {
        const { launches, slots, scratch, groups, counts } = this;
        const end = words.length;
        let at = start;
        while (at < end) {
            this.at = at;
            const head = words[at];
            const payload = head >>> CODE_BITS;
            switch (head & CODE_MASK) {
                case RUN: {
                    const launch = launches[payload];
                    if (launch === undefined) throw new Error("the window is damaged");
                    const { pipeline, count, patches } = launch;
                    if (this.encoded === MOST_DISPATCHES || this.arenaUsed + launch.step > ARENA_BYTES) this.#finish();
                    const cached = launch.group.blocks;
                    let hit = cached.length === count;
                    at++;
                    for (let i = 0; i < count; i++) {
                        const slot = words[at++];
                        const block = slots[slot] ?? this.#materialize(slot);
                        block.touched = this.serial;
                        scratch[i] = block;
                        if (hit && cached[i] !== block) hit = false;
                    }
                    if (!hit) launch.group = this.#findGroup(launch, words, at - count);
                    const pass = this.pass ?? this.#openPass();
                    if (pipeline !== this.boundPipeline) {
                        if (pipeline.broken !== null) throw new Error("its pipeline could not be made");
                        pass.setPipeline(pipeline.gpu);
                        this.boundPipeline = pipeline;
                    }
                    if (launch.group !== this.boundGroup) {
                        pass.setBindGroup(0, launch.group.bindGroup);
                        this.boundGroup = launch.group;
                    }
                    const params = launch.words;
                    if (params.length > 0 && (launch !== this.lastLaunch || patches.length > 0)) {
                        for (let i = 0; i < patches.length; i++) params[patches[i]] = words[at++];
                        if (launch.step === 0) pass.setImmediates(0, params);
                        else this.#bindArena(launch);
                    }
                    pass.dispatchWorkgroups(launch.x, launch.y, launch.z);
                    this.lastLaunch = launch;
                    this.encoded++;
                    counts.dispatches++;
                    break;
                }
                case ALLOC:
                    this.#declare(payload, words[at + 1]);
                    at += 2;
                    break;
                case FREE:
                    this.#release(payload);
                    at += 1;
                    break;
                case UPLOAD:
                    at += 3 + this.#upload(payload, words[at + 1], words[at + 2], words, at + 3);
                    break;
                case COPY:
                    this.#copy(payload, words[at + 1], words[at + 2], words[at + 3], words[at + 4]);
                    at += 5;
                    break;
                default:
                    throw new Error("no such record");
            }
        }
    }

    #declare(slot, nbytes) {
        while (this.slots.length <= slot) {
            this.slots.push(null);
            this.sizes.push(-1);
        }
        if (this.sizes[slot] >= 0) throw new Error(`slot ${slot} exists already`);
        this.sizes[slot] = nbytes;
    }

    #materialize(slot) {
        const nbytes = this.sizes[slot] ?? -1;
        if (nbytes < 0) throw new Error(`slot ${slot} does not exist`);
        return (this.slots[slot] = this.pool.take(nbytes));
    }

    #release(slot) {
        if (slot === STATUS_SLOT || (this.sizes[slot] ?? -1) < 0) throw new Error(`slot ${slot} does not exist`);
        if (this.slots[slot] !== null) this.pool.give(this.slots[slot]);
        this.slots[slot] = null;
        this.sizes[slot] = -1;
    }

    /** The bind group for `scratch`, when it is not that of the launch's last run. */
    #findGroup(launch, words, first) {
        for (let i = 0; i < launch.count; i++) {
            if (this.sizes[words[first + i]] > this.groups.bindingLimit) {
                const limit = this.groups.bindingLimit;
                throw new RangeError(`binding ${i} has ${this.sizes[words[first + i]]} bytes; this device binds at most ${limit}`);
            }
        }
        return this.groups.find(launch.pipeline.layout, this.scratch);
    }

    #upload(slot, offset, nbytes, words, first) {
        const count = Math.ceil(nbytes / 4);
        const block = this.slots[slot] ?? this.#materialize(slot);
        checkRange("upload", offset, count * 4, block);
        this.counts.uploads++;
        if (count === 0) return 0;
        if (block.touched === this.serial && this.stagingUsed + count * 4 > STAGING_BYTES) this.#finish();
        if (block.touched !== this.serial) {
            // No pending command uses the block, so overtaking them all changes nothing.
            this.queue.writeBuffer(block.buffer, offset, words, first, count);
            return count;
        }
        this.stagingWords.set(words.subarray(first, first + count), this.stagingUsed / 4);
        this.#openEncoder().copyBufferToBuffer(this.staging, this.stagingUsed, block.buffer, offset, count * 4);
        this.stagingUsed += count * 4;
        return count;
    }

    #copy(source, target, sourceOffset, targetOffset, nbytes) {
        const from = this.slots[source] ?? this.#materialize(source);
        const to = this.slots[target] ?? this.#materialize(target);
        checkRange("copy from", sourceOffset, nbytes, from);
        checkRange("copy to", targetOffset, nbytes, to);
        if (nbytes === 0) return;
        const encoder = this.#openEncoder();
        from.touched = to.touched = this.serial;
        if (from !== to) {
            encoder.copyBufferToBuffer(from.buffer, sourceOffset, to.buffer, targetOffset, nbytes);
            return;
        }
        // WebGPU does not copy within one buffer.
        const between = this.pool.take(nbytes);
        between.touched = this.serial;
        encoder.copyBufferToBuffer(from.buffer, sourceOffset, between.buffer, 0, nbytes);
        encoder.copyBufferToBuffer(between.buffer, 0, to.buffer, targetOffset, nbytes);
        this.pool.give(between);
    }

    /** An encoder without an open pass, for a copy. */
    #openEncoder() {
        this.#closePass();
        if (this.encoder === null) {
            this.faults.open("validation");
            this.encoder = this.device.createCommandEncoder();
        }
        return this.encoder;
    }

    #openPass() {
        this.pass = this.#openEncoder().beginComputePass();
        this.counts.passes++;
        return this.pass;
    }

    #closePass() {
        if (this.pass === null) return;
        this.pass.end();
        this.pass = null;
        this.#unbind();
    }

    #unbind() {
        this.boundPipeline = this.boundGroup = this.lastLaunch = null;
    }

    /** Submit what is encoded. */
    #finish() {
        this.#closePass();
        this.serial++;
        if (this.encoder === null) return;
        if (this.arenaUsed > 0) this.queue.writeBuffer(this.arena, 0, this.arenaWords, 0, this.arenaUsed / 4);
        if (this.stagingUsed > 0) this.queue.writeBuffer(this.staging, 0, this.stagingWords, 0, this.stagingUsed / 4);
        this.queue.submit([this.encoder.finish()]);
        this.faults.close((message) => message);
        this.encoder = null;
        this.encoded = this.arenaUsed = this.stagingUsed = 0;
        this.counts.submits++;
    }

    #bindArena(launch) {
        this.arenaWords.set(launch.words, this.arenaUsed / 4);
        this.arenaOffset[0] = this.arenaUsed;
        this.pass.setBindGroup(1, launch.arenaGroup, this.arenaOffset, 0, 1);
        this.arenaUsed += launch.step;
    }

    #makeArenaGroup(step) {
        const layout = this.pipelines.arenaLayout(step);
        const entries = [{ binding: 0, resource: { buffer: this.arena, size: step } }];
        this.arenaGroups.set(step, this.device.createBindGroup({ label: `arena ${step}`, layout, entries }));
    }

    #createBuffer(block) {
        const usage = GPUBufferUsage.STORAGE | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST;
        const watched = block.bytes >= WATCHED_BYTES;
        if (watched) this.faults.open("out-of-memory");
        const buffer = this.device.createBuffer({ label: `block ${block.id}`, size: block.bytes, usage });
        if (watched) {
            this.faults.close((message) => {
                block.broken = true;
                return `a buffer of ${block.bytes} bytes: ${message}`;
            });
        }
        return buffer;
    }

    #checkParams(paramsBytes, immediate, label) {
        const most = immediate ? this.info.immediates : Math.min(ARENA_BYTES, this.info.limits.maxUniformBufferBindingSize);
        if (paramsBytes > most) throw new RangeError(`${label}: ${paramsBytes} bytes of parameters exceed the limit of ${most}`);
    }

    /** Words of the record at `at`; a record that cannot be measured takes the rest of the window with it. */
    #lengthAt(words, at) {
        const payload = words[at] >>> CODE_BITS;
        switch (words[at] & CODE_MASK) {
            case RUN: {
                const launch = this.launches[payload];
                return launch === undefined ? words.length : 1 + launch.count + launch.patches.length;
            }
            case ALLOC:
                return 2;
            case FREE:
                return 1;
            case UPLOAD:
                return 3 + Math.ceil(words[at + 2] / 4);
            case COPY:
                return 5;
            default:
                return words.length;
        }
    }

    #labelAt(words) {
        const code = words[this.at] & CODE_MASK;
        const payload = words[this.at] >>> CODE_BITS;
        if (code === RUN) return this.launches[payload]?.label ?? `launch ${payload} was never registered`;
        return ["", "alloc", "free", "upload", "copy"][code] ?? `record ${code}`;
    }
}

function checkRange(what, offset, nbytes, block) {
    if (offset + nbytes > block.bytes) {
        throw new RangeError(`${what}: ${nbytes} bytes at ${offset} do not fit a block of ${block.bytes}`);
    }
}
