"""Builds of many modules: selecting them (`plan`, `project`), and running them (`pool`)."""
