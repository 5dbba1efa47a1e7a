"""aotc's own passes, one per file. `base` defines the pass protocol for upstream and own passes."""
