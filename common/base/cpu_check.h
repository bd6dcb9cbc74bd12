#ifndef BATON_COMMON_BASE_CPU_CHECK_H_
#define BATON_COMMON_BASE_CPU_CHECK_H_

namespace baton {

// Ends the process with status 1 and a message that names what is missing
// unless the machine runs x86-64-v3 code (AVX2, FMA, F16C, BMI2). Call it first
// in main; linking it in also runs it before constructors of globals, which are
// compiled for that machine too.
void RequireSupportedCpu();

}  // namespace baton

#endif  // BATON_COMMON_BASE_CPU_CHECK_H_
