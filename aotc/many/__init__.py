"""Builds of many modules: which they are (`plan`, `project`), and how they run (`pool`)."""
