"""Reads device images in files made by aotc or other tools: cubins, PTX, fat binaries."""
