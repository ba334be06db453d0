// Where the windows of four pixels lie in x, for a convolution and for its transpose.
//
// Along an axis the pixel at place q of a phase meets with tap t the kernel's element first + t *
// every and what lies at q * pace + start + t * reach. All is modulo 2^32: a place before the edge
// is a large number. A convolution has one phase. Its transpose has `stride` of them, for a pixel
// meets only the elements of the kernel with which pixel + padding - element * dilation is a
// multiple of the stride: every `every`-th.
//
// The kernel declares `const TRANSPOSED`, `fn load_x` and in Params groups, rows, channels (of a
// group), pixels (of a phase, all images), grid_height and grid_width (of a phase and an image),
// in_height, in_width, out_height, out_width, and by axis vertical and horizontal: (stride,
// dilation, padding before, every).
//
// turns  at most the stride

// From here no tap reaches x.
const CONV_NOWHERE = 0x80000000u;

struct ConvAxis {
    pace: u32,
    start: u32,
    reach: u32,
    first: u32,
    every: u32,
}

// bases: where their images' channels begin in x; ys, xs: the places that tap 0 meets; places: in
// out, at row 0.
struct ConvPixels {
    bases: vec4<u32>,
    ys: vec4<u32>,
    xs: vec4<u32>,
    places: vec4<u32>,
    inside: vec4<bool>,
}

// What a tap meets: places in x, 0 where it lies outside.
struct ConvWindow {
    places: vec4<u32>,
    inside: vec4<bool>,
}

fn conv_axis(settings: vec4<u32>, length: u32, phase: u32) -> ConvAxis {
    let stride = settings.x;
    let dilation = settings.y;
    let before = settings.z;
    if (!TRANSPOSED) {
        return ConvAxis(stride, 0u - before, dilation, 0u, 1u);
    }
    // -dilation and this leave the same remainder, and it is not negative
    let back = dilation * (stride - 1u);
    var first = 0u;
    while (first < length && (phase + before + first * back) % stride != 0u) {
        first++;
    }
    let start = (phase + before + first * back) / stride - first * dilation;
    return ConvAxis(1u, start, 0u - settings.w * dilation / stride, first, settings.w);
}

fn conv_pixels(
    pixels: vec4<u32>, group: u32, phase: vec2<u32>, vertical: ConvAxis, horizontal: ConvAxis,
) -> ConvPixels {
    let line = pixels / params.grid_width;
    let number = line / params.grid_height;
    let image = number * params.groups + group;
    let q_y = line - number * params.grid_height;
    let q_x = pixels - line * params.grid_width;
    var y = q_y;
    var x = q_x;
    if (TRANSPOSED) {
        y = q_y * params.vertical.x + phase.y;
        x = q_x * params.horizontal.x + phase.x;
    }
    let inside = (pixels < vec4<u32>(params.pixels)) & (y < vec4<u32>(params.out_height))
        & (x < vec4<u32>(params.out_width));
    let ys = q_y * vertical.pace + vertical.start;
    return ConvPixels(
        image * (params.channels * params.in_height * params.in_width),
        select(vec4<u32>(CONV_NOWHERE), ys, inside),
        q_x * horizontal.pace + horizontal.start,
        (image * params.rows * params.out_height + y) * params.out_width + x,
        inside,
    );
}

fn conv_window(
    pixels: ConvPixels, vertical: ConvAxis, horizontal: ConvAxis, tap_y: u32, tap_x: u32,
) -> ConvWindow {
    let ys = pixels.ys + tap_y * vertical.reach;
    let xs = pixels.xs + tap_x * horizontal.reach;
    let inside = (ys < vec4<u32>(params.in_height)) & (xs < vec4<u32>(params.in_width));
    let places = pixels.bases + ys * params.in_width + xs;
    return ConvWindow(select(vec4<u32>(), places, inside), inside);
}

// The values of a window in the channel that begins `channel` elements further.
fn conv_values(window: ConvWindow, channel: u32) -> vec4<f32> {
    let places = window.places + channel;
    let values = vec4<f32>(load_x(places.x), load_x(places.y), load_x(places.z),
        load_x(places.w));
    return select(vec4<f32>(), values, window.inside);
}
