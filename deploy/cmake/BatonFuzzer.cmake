# baton_fuzzer(NAME SRCS ... DEPS ...)
#   The fuzzer fuzz_NAME with the seeds in tests/fuzz/corpus/NAME.
#   BATON_FUZZ: built with libFuzzer by the target `fuzzers`; the test replays
#     the seeds and fuzzes for BATON_FUZZ_SECONDS.
#   Otherwise: the test fuzz_NAME_replay runs every seed once. With
#     BATON_FUZZ_DIR, the build folder of a fuzz preset, the test above runs
#     from there too.
set(BATON_FUZZ_SECONDS 15 CACHE STRING "How long a test fuzzes")
set(BATON_FUZZ_DIR "" CACHE PATH "Build folder of a fuzz preset")
if(BATON_FUZZ)
  set(BATON_FUZZ_DIR ${PROJECT_BINARY_DIR})
endif()

function(baton_fuzzer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;DEPS")
  set(fuzzer fuzz_${name})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  add_executable(${fuzzer} ${arg_SRCS})
  target_link_libraries(${fuzzer} PRIVATE baton_warnings ${arg_DEPS})
  target_include_directories(${fuzzer} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${fuzzer} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(BATON_FUZZ)
    target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzzers ${fuzzer})
  else()
    target_link_libraries(${fuzzer} PRIVATE baton_fuzz_replay)
    add_test(NAME ${fuzzer}_replay COMMAND ${fuzzer} ${corpus})
    set_tests_properties(${fuzzer}_replay PROPERTIES LABELS fuzz TIMEOUT 120)
  endif()
  if(BATON_FUZZ_DIR)
    # New inputs and crashes go to a folder of the build, not to the seeds.
    set(found ${BATON_FUZZ_DIR}/tests/found/${name})
    file(MAKE_DIRECTORY ${found})
    math(EXPR limit "${BATON_FUZZ_SECONDS} + 120")
    add_test(NAME ${fuzzer} COMMAND ${BATON_FUZZ_DIR}/tests/${fuzzer}
      -max_total_time=${BATON_FUZZ_SECONDS} -len_control=20 -timeout=20
      -rss_limit_mb=2048
      -print_final_stats=1 -artifact_prefix=${BATON_FUZZ_DIR}/tests/${name}-
      ${found} ${corpus})
    set_tests_properties(${fuzzer} PROPERTIES LABELS fuzz TIMEOUT ${limit})
  endif()
endfunction()
