// The plan of a route: which rows are whose once they are sorted by expert, then by token.
#pragma once
#include <words.cuh>

// Up to so many rows of one expert as the plan was asked for; dense from row 0 on, in the order of the experts.
struct ExpertTile {
    i32 expert, first, rows, unused;
};

// `rows` comes first so that the address of the plan is that of the number of routed rows.
struct ExpertTiles {
    i32 rows, count, unused[2];
    WORD const ExpertTile *tiles() const { return (const ExpertTile *)(this + 1); }
};
