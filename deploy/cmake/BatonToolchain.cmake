# Language level, floating-point contract, warnings, ccache, mold, sanitizers.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set_property(GLOBAL PROPERTY GLOBAL_DEPENDS_NO_CYCLES ON)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")

set(BATON_SANITIZE "" CACHE STRING "Sanitizers, for instance address,undefined")

# x86-64-v3 (AVX2, FMA, F16C) is the smallest machine Baton runs on; wider
# kernels live in their own translation units and are chosen at run time.
# Numerics class exact-v1 forbids contraction everywhere.
add_compile_options(-march=x86-64-v3 -ffp-contract=off)

add_library(baton_warnings INTERFACE)
target_compile_options(baton_warnings INTERFACE
  -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Werror)

# The fuzz presets: clang instruments every library for libFuzzer.
option(BATON_FUZZ "Build the fuzzers of tests/fuzz and nothing else" OFF)
if(BATON_FUZZ)
  # Since version 18 clang mangles absl::Cord(std::string) unlike the g++ that
  # Debian's libraries were built with. g++ alone judges warnings.
  add_compile_options(-fsanitize=fuzzer-no-link -fclang-abi-compat=17 -w)
endif()

if(BATON_SANITIZE)
  add_compile_options(-fsanitize=${BATON_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all -g1)
  add_link_options(-fsanitize=${BATON_SANITIZE})
endif()

find_program(BATON_CCACHE ccache)
if(BATON_CCACHE)
  # Paths below the source folder do not count: clones share their cache.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${BATON_CCACHE})
endif()
find_program(BATON_MOLD mold)
if(BATON_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
