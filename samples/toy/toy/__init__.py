"""The Toy language of MLIR's tutorial, as a front end of aotc.

In the order in which a program goes through them: `parse` makes a `tree` of text, `names` and
`shapes` find what is wrong in it, `emit` makes MLIR of it, and `frontend` is what aotc calls.
"""
