"""`aotc explore`: one HTML page that shows the module of a build after each pass and stage.

`recorder` observes a build, `text` maps each line to the lines of earlier texts that it comes from,
`facts` has the kernels and buffers, `timeline` the events of a run, and `page` writes the page.
"""
