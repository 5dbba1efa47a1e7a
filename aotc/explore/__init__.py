"""`aotc explore`: a build's module after each pass and stage, as one HTML page.

`recorder` watches a build, `text` says from which lines of an earlier text each line comes,
`facts` has the kernels and buffers, `timeline` a run's events, and `page` writes all of it.
"""
