"""The stages of a build. `pipeline` has their order."""
