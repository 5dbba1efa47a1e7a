// Detects misspelled environment variables.
#ifndef AOTC_HARNESS_ENVIRONMENT_H
#define AOTC_HARNESS_ENVIRONMENT_H

// Prints a note for each variable with an unknown name that is similar to one the runtime reads.
void harness_note_variables(void);

#endif
