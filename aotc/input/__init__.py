"""Reading of inputs: formats → module, and the entries that a module has."""
