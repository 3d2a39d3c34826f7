// Work of attention with few tokens: a token, up to eight query heads that share a KV head, a chunk of positions.
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
    int token, group, chunk; // chunk counts from the token's first
    Seen seen;
};

// Deals out pieces of work by number, ascending; all lanes of a warp call it.
struct Dealer {
    const Step *step;
    i64 window, causal, most, groups;
    int base, before; // tokens below `base` have `before` pieces

    WORD bool find(Work &work, int number) {
        for (; base < step->tokens; base += 32) {
            const int token = base + lane();
            int sum = token < step->tokens ? int(groups) * seen_by(step, token, window, causal, most).chunks() : 0;
            const int own = sum;
            for (int by = 1; by < 32; by *= 2) {
                const int other = shuffle(sum, lane() - by);
                sum += lane() >= by ? other : 0;
            }
            const int total = shuffle(sum, 31);
            if (number < before + total) {
                const int source = __popc(__ballot_sync(0xffffffffu, before + sum <= number));
                const int place = number - before - shuffle(sum - own, source);
                work = {base + source, place % int(groups), place / int(groups), {}};
                work.seen = seen_by(step, work.token, window, causal, most);
                return true;
            }
            before += total;
        }
        return false;
    }
};
