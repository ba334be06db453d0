// The kernels of wgsl.js.

const NAMES = ["x", "y", "z", "w"];
const each = (f) => [0, 1, 2, 3].map(f).join("\n");

/**
 * out = a @ b for SIZE x SIZE, SIZE a multiple of 64. A workgroup makes 64 x 64 of it, an invocation 4 x 4, in steps of 16 along
 * the sum; accumulators are variables of their own, since an array that a loop indexes would lie in memory.
 */
export const MATMUL = `
override SIZE: u32;
@group(0) @binding(0) var<storage, read> a: array<vec4f>;
@group(0) @binding(1) var<storage, read> b: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> out: array<vec4f>;
var<workgroup> left: array<vec4f, 256>;
var<workgroup> right: array<vec4f, 256>;
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) tile: vec3u, @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) index: u32) {
  let width = SIZE / 4u;
  let row = tile.y * 64u;
  let column = tile.x * 16u;
  ${each((i) => `var sum${i} = vec4f(0.0);`)}
  for (var k = 0u; k < SIZE; k += 16u) {
    left[index] = a[(row + index / 4u) * width + k / 4u + index % 4u];
    right[index] = b[(k + index / 16u) * width + column + index % 16u];
    workgroupBarrier();
    for (var q = 0u; q < 4u; q++) {
      ${each((j) => `let b${j} = right[(4u * q + ${j}u) * 16u + local.x];`)}
      ${each(
        (i) => `let a${i} = left[(4u * local.y + ${i}u) * 4u + q];
      sum${i} += ${NAMES.map((name, j) => `a${i}.${name} * b${j}`).join(" + ")};`,
      )}
    }
    workgroupBarrier();
  }
  ${each((i) => `out[(row + 4u * local.y + ${i}u) * width + column + local.x] = sum${i};`)}
}`;

/** out = x + y where ADD is 1, else x * y. */
export const CHAIN = `
override ADD: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> y: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
  if (ADD == 1u) { out[id.x] = x[id.x] + y[id.x]; } else { out[id.x] = x[id.x] * y[id.x]; }
}`;

/** softmax of rows of 1024: a workgroup has a row, an invocation four neighbours of it, read once. */
export const ROW_SOFTMAX = `
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4f>;
var<workgroup> parts: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) row: vec3u, @builtin(local_invocation_index) lane: u32) {
  let values = x[row.x * 256u + lane];
  parts[lane] = max(max(values.x, values.y), max(values.z, values.w));
  workgroupBarrier();
  for (var step = 128u; step > 0u; step /= 2u) {
    if (lane < step) { parts[lane] = max(parts[lane], parts[lane + step]); }
    workgroupBarrier();
  }
  let shifted = exp(values - parts[0]);
  workgroupBarrier();
  parts[lane] = shifted.x + shifted.y + shifted.z + shifted.w;
  workgroupBarrier();
  for (var step = 128u; step > 0u; step /= 2u) {
    if (lane < step) { parts[lane] += parts[lane + step]; }
    workgroupBarrier();
  }
  out[row.x * 256u + lane] = shifted / parts[0];
}`;

/** Each workgroup sums its share of x: share g of the workgroups is every so manieth 256 vectors. */
export const SUM = `
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
var<workgroup> parts: array<f32, 256>;
@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u,
        @builtin(local_invocation_index) lane: u32) {
  var sum = vec4f(0.0);
  for (var i = group.x * 256u + lane; i < arrayLength(&x); i += groups.x * 256u) { sum += x[i]; }
  parts[lane] = sum.x + sum.y + sum.z + sum.w;
  workgroupBarrier();
  for (var step = 128u; step > 0u; step /= 2u) {
    if (lane < step) { parts[lane] += parts[lane + step]; }
    workgroupBarrier();
  }
  if (lane == 0u) { out[group.x] = parts[0]; }
}`;
