# baton_library(NAME SRCS ... HDRS ... DEPS ... PRIVATE_DEPS ...)
#   One library per folder, named after its path: common/base -> common_base,
#   used by others as baton::common_base. Without SRCS it is header-only.
function(baton_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;HDRS;DEPS;PRIVATE_DEPS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "baton_library(${name}): ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  if(arg_SRCS)
    add_library(baton_${name} STATIC ${arg_SRCS} ${arg_HDRS})
    set(scope PUBLIC)
    target_link_libraries(baton_${name} PRIVATE baton_warnings
      ${arg_PRIVATE_DEPS})
  else()
    add_library(baton_${name} INTERFACE ${arg_HDRS})
    set(scope INTERFACE)
  endif()
  target_include_directories(baton_${name} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(baton_${name} ${scope} ${arg_DEPS})
  add_library(baton::${name} ALIAS baton_${name})
endfunction()

# baton_binary(NAME SRCS ... DEPS ...): an executable under build/bin.
function(baton_binary name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SRCS;DEPS")
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE baton_warnings ${arg_DEPS})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
endfunction()

# baton_test(NAME SRCS ... DEPS ... LABEL unit|conformance|...  TIMEOUT s [TSAN])
#   A GoogleTest executable, registered with ctest as one test per binary. TSAN:
#   it has threads of ours and is worth running under ThreadSanitizer (label
#   tsan, target tsan_tests: tests/run.sh --preset tsan). What it shares with
#   foreign libraries is not judged (tests/tsan.supp). Its temporary files have a
#   folder of their own: others run beside it.
function(baton_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TSAN" "LABEL;TIMEOUT" "SRCS;DEPS")
  add_executable(${name} ${arg_SRCS})
  target_link_libraries(${name} PRIVATE baton_warnings ${arg_DEPS}
    GTest::gmock GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/tests/tmp/${name})
  set(environment
    "TEST_TMPDIR=set:${PROJECT_BINARY_DIR}/tests/tmp/${name}")
  if(arg_TSAN)
    list(APPEND arg_LABEL tsan)
    add_dependencies(tsan_tests ${name})
    list(APPEND environment
      "TSAN_OPTIONS=set:ignore_noninstrumented_modules=1 \
suppressions=${PROJECT_SOURCE_DIR}/tests/tsan.supp")
  endif()
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT_MODIFICATION "${environment}")
  set_tests_properties(${name} PROPERTIES LABELS "${arg_LABEL}"
    TIMEOUT ${arg_TIMEOUT})
endfunction()
