// Rows that are computed column by column. A row is what can be asked for a column, `row[c]`, or for four from a multiple
// of four on, `row.four(c)`; it need not lie in memory.
#pragma once
#include <forms.cuh>

// A row that does.
struct Plain {
    const float *x;
    WORD float operator[](int c) const { return x[c]; }
    WORD float4 four(int c) const { return *(const float4 *)(x + c); }
};

// Four columns of a row of `width`, zero behind it.
template <class Row> WORD auto four_of(const Row &row, int c, int width) -> decltype(row.four(c)) {
    if (c + 3 < width) return row.four(c);
    return make_float4(c < width ? row[c] : 0.f, c + 1 < width ? row[c + 1] : 0.f, c + 2 < width ? row[c + 2] : 0.f, 0.f);
}

WORD void store_four(float *row, int c, int width, float4 v) {
    if (c + 3 < width) {
        *(float4 *)(row + c) = v;
        return;
    }
    if (c < width) row[c] = v.x;
    if (c + 1 < width) row[c + 1] = v.y;
    if (c + 2 < width) row[c + 2] = v.z;
}

// Store a row in every form that has an address. `blocks` blocks share it, of which this is `block`, a warp a unit, except
// where halves are wanted: their scale is of the whole row, so that there one block does all.
template <class Row>
WORD void store_columns(const Forms &to, i64 token, const Row &row, i64 columns, i64 stride, int block, int blocks) {
    if (to.halves) {
        store_row(to, token, row, columns, stride);
        return;
    }
    const int units = padded_units(columns), warps = blockDim.x / 32, width = int(columns);
    for (int unit = block * warps + warp(); unit < units; unit += blocks * warps) {
        const int c = 256 * unit + 4 * lane();
        const float4 first = four_of(row, c, width), second = four_of(row, c + 128, width);
        if (to.rows) {
            store_four(to.rows + token * stride, c, width, first);
            store_four(to.rows + token * stride, c + 128, width, second);
        }
        if (to.planes) store_unit(to, int(token), unit, units, first, second);
    }
}
