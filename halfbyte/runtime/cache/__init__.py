"""Where computed KV is kept: pages in memory, in the swap file, in sessions and on disk."""
