// exp(difference), where difference is at most zero; 0 where it is below the normal numbers.

fn sampling_weight(difference: f32) -> f32 {
    return select(exp(max(difference, -88.0)), 0.0, difference < -87.0);
}
