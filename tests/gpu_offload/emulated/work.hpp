// Work of collectives: lanes have brought values, the last one to arrive works for all.
#pragma once
#include "fibers.hpp"

namespace emulator {

void no_work(Lane *, int) {}

// in: a value of 8 bytes, the lane to read from
void give_values(Lane *lanes, int count) {
    for (int i = 0; i < count; i++) {
        const u32 source = lanes[i].in[2];
        const Lane &from = int(source) < count ? lanes[source] : lanes[i];
        lanes[i].out[0] = from.in[0], lanes[i].out[1] = from.in[1];
    }
}

void give_votes(Lane *lanes, int count) {
    u32 votes = 0;
    for (int i = 0; i < count; i++) votes |= (lanes[i].in[0] != 0 ? 1u : 0u) << i;
    for (int i = 0; i < count; i++) lanes[i].out[0] = votes;
}

u32 all_lanes() { return warps[current / 32].size == 32 ? 0xffffffffu : (1u << warps[current / 32].size) - 1; }

// --- matrices: registers of a warp to rows and columns -------------------------------------------------------------------

int byte_at(u32 word, int i) { return int((signed char)(word >> 8 * i & 0xff)); }
float half_at(u32 word, int i) { return half_to_float((unsigned short)(word >> 16 * i)); }

// in: c[4], a[2 * PARTS], b[PARTS]; a part is four neighbours in 16 columns
template <int PARTS> void multiply_bytes(Lane *lanes, int) {
    int a[16][16 * PARTS], b[16 * PARTS][8];
    for (int lane = 0; lane < 32; lane++)
        for (int part = 0; part < PARTS; part++)
            for (int i = 0; i < 4; i++) {
                const int k = 16 * part + 4 * (lane % 4) + i, g = lane / 4;
                a[g][k] = byte_at(lanes[lane].in[4 + 2 * part], i);
                a[g + 8][k] = byte_at(lanes[lane].in[5 + 2 * part], i);
                b[k][g] = byte_at(lanes[lane].in[4 + 2 * PARTS + part], i);
            }
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            u32 sum = lanes[lane].in[i];
            for (int k = 0; k < 16 * PARTS; k++)
                sum += u32(a[lane / 4 + i / 2 * 8][k] * b[k][2 * (lane % 4) + i % 2]);
            lanes[lane].out[i] = sum;
        }
}

// in: c[4], a[4], b[2]. A GPU adds with more bits than a float has and drops the rest; here the sum over ascending k and c
// is of doubles, rounded to a float once.
void multiply_halves(Lane *lanes, int) {
    float a[16][16], b[16][8];
    for (int lane = 0; lane < 32; lane++)
        for (int part = 0; part < 2; part++)
            for (int i = 0; i < 2; i++) {
                const int k = 8 * part + 2 * (lane % 4) + i, g = lane / 4;
                a[g][k] = half_at(lanes[lane].in[4 + 2 * part], i);
                a[g + 8][k] = half_at(lanes[lane].in[5 + 2 * part], i);
                b[k][g] = half_at(lanes[lane].in[8 + part], i);
            }
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            double sum = 0;
            for (int k = 0; k < 16; k++) sum += double(a[lane / 4 + i / 2 * 8][k]) * b[k][2 * (lane % 4) + i % 2];
            lanes[lane].out[i] = bits_of(float(sum + float_of(lanes[lane].in[i])));
        }
}

// in: an address. Lane 8i + j has that of row j of matrix i.
template <bool TRANSPOSED> void load_rows(Lane *lanes, int) {
    unsigned short rows[4][8][8];
    for (int lane = 0; lane < 32; lane++) {
        const void *row;
        memcpy(&row, lanes[lane].in, sizeof row);
        memcpy(rows[lane / 8][lane % 8], row, 16);
    }
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const int line = lane / 4, at = 2 * (lane % 4);
            const unsigned first = TRANSPOSED ? rows[i][at][line] : rows[i][line][at];
            const unsigned second = TRANSPOSED ? rows[i][at + 1][line] : rows[i][line][at + 1];
            lanes[lane].out[i] = first | second << 16;
        }
}

// Matrix instructions need all 32 lanes.
void meet_whole(const char *place, Work work) {
    if (warps[current / 32].size != 32) fail("%s in a warp of %d lanes", place, warps[current / 32].size);
    meet(place, work);
}

template void multiply_bytes<1>(Lane *, int);
template void multiply_bytes<2>(Lane *, int);
template void load_rows<false>(Lane *, int);
template void load_rows<true>(Lane *, int);
} // namespace emulator
