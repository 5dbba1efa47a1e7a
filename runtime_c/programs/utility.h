// The prefix of the definition of each function declared in a header.
//
// A library's entry may have the same name as one of these functions. The entry then takes
// precedence inside the module and is what the library exports. The functions must therefore not
// call each other.
#ifndef AOTC_PROGRAM_UTILITY_H
#define AOTC_PROGRAM_UTILITY_H

#define UTILITY __attribute__((weak))

#endif // AOTC_PROGRAM_UTILITY_H
