"""The commands of `aotc`: one module per command, with its name, imported when it is used."""
