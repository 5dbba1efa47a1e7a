"""`aotc bench`: executables of aotc's, timed in turns, tabulated, compared and plotted."""
