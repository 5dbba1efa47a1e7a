"""The order in which the dimensions of temporary buffers are in memory: `channels` chooses it, and
`permute` changes a buffer and what uses it."""
