# The project's whole build vocabulary: lade_library, lade_test, lade_fuzz, lade_program, lade_embed.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)             # gnu17: typeof, statement attributes
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

option(LADE_WERROR "warnings are errors" OFF)
option(LADE_FUZZ "libFuzzer targets (clang)" OFF)
option(LADE_FAULTS "fault points of base/fault.h" OFF)
option(LADE_TLS "rediss:// by OpenSSL" ON)
set(LADE_SANITIZE "" CACHE STRING "address,undefined | thread | (empty)")

add_library(lade_flags INTERFACE)
target_compile_options(lade_flags INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes
  -Wmissing-declarations -Wpointer-arith -Wcast-align -Wwrite-strings
  -Wformat=2 -Wundef -Wvla -Wswitch-enum -Wconversion -Wno-sign-conversion
  -Wimplicit-fallthrough -Wnull-dereference -Wdouble-promotion -fno-common
  -fno-omit-frame-pointer -fstack-protector-strong
  $<$<BOOL:${LADE_WERROR}>:-Werror>
  $<$<C_COMPILER_ID:GNU>:-Wlogical-op -Wduplicated-cond -Wduplicated-branches -Wformat-signedness>)
target_compile_definitions(lade_flags INTERFACE _GNU_SOURCE $<$<BOOL:${LADE_FAULTS}>:LADE_FAULTS>)
if(LADE_SANITIZE)
  target_compile_options(lade_flags INTERFACE -fsanitize=${LADE_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(lade_flags INTERFACE -fsanitize=${LADE_SANITIZE})
endif()
if(LADE_FUZZ)
  target_compile_options(lade_flags INTERFACE -fsanitize=fuzzer-no-link) # coverage feedback from the libraries
endif()

# lade_library(NAME SOURCES... DEPS... [TESTS...]): one layer = one static library.
# DEPS are libraries lower in the picture of ARCHITECTURE.md; tests link cmocka too.
function(lade_library name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS;TESTS" ${ARGN})
  add_library(lade_${name} STATIC ${A_SOURCES})
  target_include_directories(lade_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(lade_${name} PUBLIC ${A_DEPS} PRIVATE lade_flags)
  foreach(t ${A_TESTS})
    lade_test(${name} ${t} DEPS lade_${name})
  endforeach()
endfunction()

# lade_test(LAYER FILE [LABEL unit] [TIMEOUT 30] [NAME x] [ARGS ...] [SOURCES ...] DEPS ...)
# TIMEOUT is what the test takes at most on a quiet machine; it is ended after ten times that or 15 minutes, so that only what
# hangs is.
# One executable, one CTest entry LAYER/NAME. Exit 77 is a skip, which fails CI.
function(lade_test layer file)
  cmake_parse_arguments(A "" "LABEL;TIMEOUT;NAME" "DEPS;ARGS;SOURCES" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  find_library(LADE_CMOCKA cmocka REQUIRED)
  if(NOT A_NAME)
    set(A_NAME ${file})
  endif()
  if(NOT A_LABEL)
    set(A_LABEL unit)
  endif()
  if(NOT A_TIMEOUT)
    set(A_TIMEOUT 30)
  endif()
  math(EXPR A_TIMEOUT "10 * ${A_TIMEOUT}")
  if(A_TIMEOUT GREATER 900)
    set(A_TIMEOUT 900)
  endif()
  set(exe test_${layer}_${file})
  if(NOT TARGET ${exe})
    add_executable(${exe} ${file}.c ${A_SOURCES})
    target_include_directories(${exe} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)
    target_link_libraries(${exe} PRIVATE ${A_DEPS} lade_flags ${LADE_CMOCKA})
  endif()
  add_test(NAME ${layer}/${A_NAME} COMMAND ${exe} ${A_ARGS})
  set_tests_properties(${layer}/${A_NAME} PROPERTIES
    LABELS "${A_LABEL}" TIMEOUT ${A_TIMEOUT} SKIP_RETURN_CODE 77
    ENVIRONMENT "CMOCKA_MESSAGE_OUTPUT=STDOUT;LADE_BIN=${CMAKE_BINARY_DIR}/bin/lade;TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tools/tsan.supp")
endfunction()

# lade_program(NAME SOURCES... DEPS...): an executable in bin/.
function(lade_program name)
  cmake_parse_arguments(A "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  target_link_libraries(${name} PRIVATE ${A_DEPS} lade_flags)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
endfunction()

# lade_fuzz(NAME DEPS...): fuzzer with clang; corpus replay test with any compiler.
function(lade_fuzz name)
  cmake_parse_arguments(A "" "" "DEPS" ${ARGN})
  if(NOT BUILD_TESTING)
    return()
  endif()
  if(NOT TARGET lade_fuzzers)
    add_custom_target(lade_fuzzers) # all of them and nothing else
  endif()
  add_executable(fuzz_${name} ${name}_fuzz.c $<$<NOT:$<BOOL:${LADE_FUZZ}>>:replay.c>)
  add_dependencies(lade_fuzzers fuzz_${name})
  target_link_libraries(fuzz_${name} PRIVATE ${A_DEPS} lade_flags)
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include)
  if(LADE_FUZZ)
    target_compile_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    # libFuzzer writes finds into its first folder: keep that one out of the source tree.
    file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
    add_test(NAME fuzz/${name} COMMAND fuzz_${name} -runs=20000
      ${CMAKE_CURRENT_BINARY_DIR}/found/${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpora/${name})
  else()
    add_test(NAME fuzz/${name} COMMAND fuzz_${name} ${CMAKE_CURRENT_SOURCE_DIR}/corpora/${name})
  endif()
  set_tests_properties(fuzz/${name} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()

# lade_embed(TARGET SYMBOL FILE...): the files, joined in order, as
#   const char SYMBOL[] (NUL-terminated) and const size_t SYMBOL_len, compiled into TARGET.
function(lade_embed target symbol)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  set(files)
  foreach(f ${ARGN})
    get_filename_component(f ${f} ABSOLUTE)
    list(APPEND files ${f})
  endforeach()
  add_custom_command(OUTPUT ${out}
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DSYMBOL=${symbol} "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/Embed.cmake VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()
