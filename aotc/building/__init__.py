"""The input of every stage (`Build`), and the results. Targets have stages, too."""
