// Variables of the environment whose name is misspelled.
#ifndef AOTC_HARNESS_ENVIRONMENT_H
#define AOTC_HARNESS_ENVIRONMENT_H

// Notes each variable that nothing reads, and whose name is near to one that the runtime reads.
void harness_note_variables(void);

#endif
