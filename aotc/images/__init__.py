"""Readers of binary files: ELF, bounded views of bytes, and the images in a file."""
