// Work of attention with few tokens: a token, up to eight query heads that share a KV head, chunks of positions.
#pragma once
#include <words.cuh>
#include <step.cuh>

// Positions [begin, end) that a token sees, in chunks of `length` positions from multiples of it on. All of it follows
// from the token's place in its sequence, whatever else a step holds: so do the borders at which sums are cut.
struct Seen {
    int begin, end, length;
    WORD int first() const { return begin / length; }
    WORD int chunks() const { return (end - 1) / length - first() + 1; }
};

// At most `most` + 1 chunks, each of a power of two of positions, 64 or more.
WORD Seen seen_by(const Step *step, i64 token, i64 window, i64 causal, i64 most) {
    const int position = step->positions[token];
    Seen seen;
    seen.end = causal ? position + 1 : step->seq_len[step->seq_of[token]];
    seen.begin = seen.end > window ? int(seen.end - window) : 0;
    seen.length = 64;
    while (i64(seen.length) * most < seen.end - seen.begin) seen.length *= 2;
    return seen;
}

struct Work {
    int token, group, chunk, end; // chunks `chunk` to `end` - 1, counted from the token's first
    Seen seen;
    WORD bool whole() const { return end - chunk == seen.chunks(); }
};

// Deals out all work to the blocks of a grid, an equal number of positions each as far as chunks allow: a chunk is done
// by the block in whose share it begins. All lanes of a warp call it.
struct Dealer {
    const Step *step;
    i64 window, causal, most;
    int groups, token, group, chunk, left; // what comes next, and how many times 64 positions are left of the share
    Seen seen;

    WORD Seen seen_of(int token) const { return seen_by(step, token, window, causal, most); }
    WORD static int cost(const Seen &seen) { return seen.chunks() * (seen.length / 64); } // of a group

    WORD int cost_from(int base, int tokens) const {
        return base + lane() < tokens ? groups * cost(seen_of(base + lane())) : 0;
    }

    // Finds where the share begins.
    WORD void begin() {
        const int tokens = step->tokens;
        int own = cost_from(0, tokens), all = own;
        for (int base = 32; base < tokens; base += 32) all += cost_from(base, tokens);
        for (int mask = 16; mask; mask /= 2) all += shuffle_xor(all, mask);
        const int share = (all - 1) / int(gridDim.x) + 1;
        int start = int(min(i64(share) * blockIdx.x, i64(all))), base = 0, sum = own;
        left = min(share, all - start);
        if (left <= 0) return;
        while (true) {
            for (int by = 1; by < 32; by *= 2) {
                const int other = shuffle(sum, lane() - by);
                sum += lane() >= by ? other : 0;
            }
            const int total = shuffle(sum, 31);
            if (start < total) break;
            start -= total, base += 32;
            sum = own = cost_from(base, tokens);
        }
        const int source = __popc(__ballot_sync(0xffffffffu, sum <= start));
        start -= shuffle(sum - own, source);
        token = base + source, seen = seen_of(token);
        const int each = cost(seen), length = seen.length / 64;
        group = start / each, chunk = (start % each + length - 1) / length;
        left -= chunk * length - start % each;
    }

    // The next chunks of one token and group.
    WORD bool next(Work &work) {
        if (left <= 0) return false;
        if (chunk == seen.chunks()) {
            chunk = 0;
            if (++group == groups) {
                group = 0;
                if (++token == step->tokens) return false;
                seen = seen_of(token);
            }
        }
        const int length = seen.length / 64, n = min(seen.chunks() - chunk, (left + length - 1) / length);
        work = {token, group, chunk, chunk + n, seen};
        left -= n * length, chunk += n;
        return true;
    }
};
