// A quad of a row (row_quads) stored: the elements inside the row, each as the kernel finishes it.
//
// The kernel declares `fn finished(column: u32, value: f32) -> f32`, `fn store_out(i: u32, value: f32)`
// and a field `columns` in Params.

fn quad_store_one(base: u32, column: u32, value: f32) {
    if (column < params.columns) {
        store_out(base + column, finished(column, value));
    }
}

fn quad_store(base: u32, columns: vec4<u32>, values: vec4<f32>) {
    quad_store_one(base, columns.x, values.x);
    quad_store_one(base, columns.y, values.y);
    quad_store_one(base, columns.z, values.z);
    quad_store_one(base, columns.w, values.w);
}
