"""Input formats → module: reads a source and finds the entries it offers."""
