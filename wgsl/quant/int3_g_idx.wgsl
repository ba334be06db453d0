// weight = d * (q - zero), q of 3 bits, d and zero of the group that the column names
//
// uses  quant/g_idx

const BITS = 3u;
