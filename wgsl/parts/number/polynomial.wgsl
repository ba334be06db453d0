// horner(p, t, c)                    p * t^4 and the polynomial of c: a step of Horner's rule by four
// three_terms(n, p, u, v, c, d, e)   p_n of 1, p, ... with (1 + e k) p_(k+1) = (u + v k) p_k - (c + d k) p_(k-1)
//
// Of n below 0 it is 0, and NaN past what a device's watchdog allows.
//
// error   against float64, of degrees to 20 between -1 and 1: 3e-5, in units of the larger of 1 and the value
// turns   at most 65535
// source  DLMF 18.9(i)

fn horner(p: f32, t: f32, c: vec4<f32>) -> f32 { return (((p * t + c.x) * t + c.y) * t + c.z) * t + c.w; }

fn three_terms(n: f32, p: f32, u: f32, v: f32, c: f32, d: f32, e: f32) -> f32 {
    if (!(trunc(n) >= 0.0)) { return 0.0; }
    if (n > 65535.0) { return bitcast<f32>(0x7fc00000u | bitcast<u32>(n)); }
    var before = 1.0;
    var found = select(p, 1.0, n < 1.0);
    for (var k = 1.0; k < trunc(n); k += 1.0) {
        let next = ((u + v * k) * found - (c + d * k) * before) / (1.0 + e * k);
        before = found;
        found = next;
    }
    return found;
}
