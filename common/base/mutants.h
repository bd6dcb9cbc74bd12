#ifndef BATON_COMMON_BASE_MUTANTS_H_
#define BATON_COMMON_BASE_MUTANTS_H_

// Seeded bugs. BATON_MUTANT("name") marks the place in a pure core where a bug
// of that name lives: constant false everywhere but in the build that
// tests/simulation makes of the cores with BATON_MUTANTS defined, where it is
// true while that mutant is chosen. The simulator proves with them that it
// finds what it should.
#ifdef BATON_MUTANTS

#include <string_view>

namespace baton {
// Empty: none. Set between simulations only.
inline std::string_view chosen_mutant;
}  // namespace baton

#define BATON_MUTANT(name) (::baton::chosen_mutant == (name))

#else

#define BATON_MUTANT(name) false

#endif

#endif  // BATON_COMMON_BASE_MUTANTS_H_
