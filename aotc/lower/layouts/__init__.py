"""Memory layouts of temporary buffers: `channels` chooses the order of dimensions, and `permute`
applies it to a buffer and its uses."""
