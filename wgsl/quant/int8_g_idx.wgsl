// weight = d * (q - zero), q of 8 bits, d and zero of the group that the column names
//
// uses  quant/g_idx

const BITS = 8u;
