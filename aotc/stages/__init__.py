"""What the stages of a build do; `pipeline` has their order."""
