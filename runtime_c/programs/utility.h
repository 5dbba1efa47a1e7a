// What each function that a header has begins with, where it is defined.
//
// A library's entry may be called like one of them. It is the entry that such a module means, and
// that the library exports; the others are there all the same. Hence they do not call each other.
#ifndef AOTC_PROGRAM_UTILITY_H
#define AOTC_PROGRAM_UTILITY_H

#define UTILITY __attribute__((weak))

#endif // AOTC_PROGRAM_UTILITY_H
