"""What a module does with its buffers: where they flow to, what is written, what may overlap."""
