"""Products with a vector, and attention of one query: what decoding is made of."""
