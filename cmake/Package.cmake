# What users install: two libraries, each shared and static, each with a pkg-config file and an imported CMake target.
#
#   liblade-rt   the runtime of <lade/rt.h>, made from lade_rt and what it needs of lade_base. Component `rt`.
#   liblade      everything else of <lade/lade.h>, made from lade_lib and the lade_* static libraries below it but the runtime,
#                which it links.
#
#   lib/libX.so.0   exports lade_* only (version script), and to liblade also the lr_* functions of rt/seam.h
#   lib/libX.a      one object, in which all but these is local, so that a program may have its own lb_map
#   lib/pkgconfig/X.pc, lib/cmake/lade/   find their prefix from where they lie: the tree may be moved
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The transitive lade_* static libraries of LIB, itself included.
function(lade_collect_layers lib out)
  set(found ${${out}})
  if(NOT lib IN_LIST found)
    list(APPEND found ${lib})
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    foreach(d ${deps})
      if(TARGET ${d} AND d MATCHES "^lade_")
        get_target_property(type ${d} TYPE)
        if(type STREQUAL "STATIC_LIBRARY")
          lade_collect_layers(${d} found)
        endif()
      endif()
    endforeach()
  endif()
  set(${out} ${found} PARENT_SCOPE)
endfunction()

# What a program linked with liblade.a needs besides liblade-rt.a.
set(LADE_SYSTEM_LIBS -lsqlite3)
if(LADE_TLS)
  list(APPEND LADE_SYSTEM_LIBS -lssl -lcrypto)
endif()
list(APPEND LADE_SYSTEM_LIBS -pthread)

find_program(LADE_OBJCOPY NAMES ${CMAKE_OBJCOPY} objcopy REQUIRED)

# lade_build_package(NAME so-and-archive name, TARGET stem; WHOLE layers of which everything is taken, SOME layers of which what
# is used is taken, KEEP symbols of SOME that are exported, HIDE symbols that another library exports, LINK what the shared one
# is linked with)
function(lade_build_package name target)
  cmake_parse_arguments(A "" "MAP;COMPONENT" "WHOLE;SOME;KEEP;HIDE;LINK" ${ARGN})
  list(TRANSFORM A_WHOLE REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE whole)
  list(TRANSFORM A_SOME REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE some)
  list(TRANSFORM A_KEEP PREPEND -Wl,-u, OUTPUT_VARIABLE keep)
  list(TRANSFORM A_HIDE PREPEND --localize-symbol= OUTPUT_VARIABLE hide)
  set(out ${CMAKE_BINARY_DIR}/lib)

  # By file, not by target: the targets' own dependencies would bring a second copy of what another package has.
  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/${target}.c CONTENT "typedef int lade_package;\n")
  add_library(${target}_shared SHARED ${CMAKE_CURRENT_BINARY_DIR}/${target}.c)
  add_dependencies(${target}_shared ${A_WHOLE} ${A_SOME})
  target_link_libraries(${target}_shared PRIVATE
    -Wl,--whole-archive ${whole} -Wl,--no-whole-archive ${some} ${A_LINK} lade_flags)
  target_link_options(${target}_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/${A_MAP} ${keep})
  set_target_properties(${target}_shared PROPERTIES
    OUTPUT_NAME ${name} VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} INSTALL_RPATH "$ORIGIN"
    LIBRARY_OUTPUT_DIRECTORY ${out} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/${A_MAP})
  target_include_directories(${target}_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  # One relocatable object of it all. With LTO gcc must compile it here: the users' compiler may be another.
  set(combine ${CMAKE_C_COMPILER} -r -nostdlib ${keep})
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    list(APPEND combine ${flags} -flto=auto -flinker-output=nolto-rel)
  endif()
  add_custom_command(OUTPUT ${out}/lib${name}.a
    COMMAND ${CMAKE_COMMAND} -E rm -f ${out}/lib${name}.a ${out}/${name}.o
    COMMAND ${combine} -Wl,--whole-archive ${whole} -Wl,--no-whole-archive ${some} -o ${out}/${name}.o
    COMMAND ${LADE_OBJCOPY} --localize-hidden ${hide} ${out}/${name}.o
    COMMAND ${CMAKE_AR} rcs ${out}/lib${name}.a ${out}/${name}.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${out}/${name}.o
    DEPENDS ${A_WHOLE} ${A_SOME} ${whole} ${some} COMMENT "Combining lib${name}.a" VERBATIM)
  add_custom_target(${target}_static ALL DEPENDS ${out}/lib${name}.a)

  install(TARGETS ${target}_shared EXPORT ${name}
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${A_COMPONENT} NAMELINK_COMPONENT ${A_COMPONENT})
  install(FILES ${out}/lib${name}.a DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${A_COMPONENT})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.pc.in ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${A_COMPONENT})
endfunction()

# lade_package(LIB RT): liblade from LIB, liblade-rt from RT.
function(lade_package lib rt)
  # Where the package files lie, seen from the prefix, and the way back up.
  set(LADE_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH LADE_PC_UP /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  string(REGEX REPLACE "/$" "" LADE_PC_UP "${LADE_PC_UP}")
  list(JOIN LADE_SYSTEM_LIBS " " LADE_PC_LIBS)

  lade_build_package(lade-rt lade_rt MAP lade-rt.map COMPONENT rt
    WHOLE ${rt} SOME lade_base KEEP lade_result_name LINK -pthread)
  set(layers)
  lade_collect_layers(${lib} layers)
  list(REMOVE_ITEM layers ${rt})
  lade_build_package(lade lade MAP lade.map COMPONENT lade
    WHOLE ${layers} HIDE lade_result_name LINK lade_rt_shared ${LADE_SYSTEM_LIBS})
  set_target_properties(lade_rt_shared PROPERTIES EXPORT_NAME rt)
  set_target_properties(lade_shared PROPERTIES EXPORT_NAME lade)
  target_link_libraries(lade_shared INTERFACE $<INSTALL_INTERFACE:lade::rt>)

  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lade)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lade-config.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/lade-config.cmake INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lade-config-version.cmake COMPATIBILITY SameMinorVersion)
  set(include ${PROJECT_SOURCE_DIR}/include/lade)
  install(FILES ${include}/base.h ${include}/rt.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/lade COMPONENT rt)
  install(DIRECTORY ${include} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT lade FILES_MATCHING PATTERN "*.h"
    PATTERN base.h EXCLUDE PATTERN rt.h EXCLUDE)
  install(EXPORT lade-rt NAMESPACE lade:: FILE lade-rt-targets.cmake DESTINATION ${package} COMPONENT rt)
  install(EXPORT lade NAMESPACE lade:: FILE lade-targets.cmake DESTINATION ${package} COMPONENT lade)
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lade-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/lade-config-version.cmake
    DESTINATION ${package} COMPONENT rt)
endfunction()
