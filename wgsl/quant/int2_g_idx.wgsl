// weight = d * (q - zero), q of 2 bits, d and zero of the group that the column names
//
// uses  quant/g_idx

const BITS = 2u;
