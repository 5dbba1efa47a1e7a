"""Reads the images in files, of aotc and of other tools: cubins, PTX, fat binaries."""
