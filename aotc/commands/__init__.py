"""The commands of `aotc`, a module of the same name for each: loaded when it is called."""
