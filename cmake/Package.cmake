# lade_package(LIB): what users install, made from LIB and the lade_* static libraries below it.
#
#   lib/liblade.so.0   shared, exports lade_* only (version script); target lade_shared
#   lib/liblade.a      one object, in which everything but lade_* is local, so that a program may have its own lb_map
#   include/lade/      public headers
#   lib/pkgconfig/lade.pc, lib/cmake/lade/   both find their prefix from where they lie: the tree may be moved
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

# What a program linked with liblade.a needs besides.
set(LADE_SYSTEM_LIBS -lsqlite3)
if(LADE_TLS)
  list(APPEND LADE_SYSTEM_LIBS -lssl -lcrypto)
endif()
list(APPEND LADE_SYSTEM_LIBS -pthread)

function(lade_package lib)
  set(layers)
  lade_collect_layers(${lib} layers)
  list(TRANSFORM layers REPLACE "(.+)" "$<TARGET_FILE:\\1>" OUTPUT_VARIABLE archives)
  set(out ${CMAKE_BINARY_DIR}/lib)

  file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/package.c CONTENT "typedef int lade_package;\n")
  add_library(lade_shared SHARED ${CMAKE_CURRENT_BINARY_DIR}/package.c)
  target_link_libraries(lade_shared PRIVATE -Wl,--whole-archive ${layers} -Wl,--no-whole-archive lade_flags)
  target_link_options(lade_shared PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/lade.map)
  set_target_properties(lade_shared PROPERTIES
    OUTPUT_NAME lade EXPORT_NAME lade VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${out} LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/lade.map)
  target_include_directories(lade_shared INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  # One relocatable object of it all. With LTO gcc must compile it here: the users' compiler may be another.
  set(combine ${CMAKE_C_COMPILER} -r -nostdlib)
  if(CMAKE_INTERPROCEDURAL_OPTIMIZATION AND CMAKE_C_COMPILER_ID STREQUAL "GNU")
    string(TOUPPER "${CMAKE_BUILD_TYPE}" type)
    separate_arguments(flags UNIX_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    list(APPEND combine ${flags} -flto=auto -flinker-output=nolto-rel)
  endif()
  find_program(LADE_OBJCOPY NAMES ${CMAKE_OBJCOPY} objcopy REQUIRED)
  add_custom_command(OUTPUT ${out}/liblade.a
    COMMAND ${CMAKE_COMMAND} -E rm -f ${out}/liblade.a ${out}/lade.o
    COMMAND ${combine} -Wl,--whole-archive ${archives} -Wl,--no-whole-archive -o ${out}/lade.o
    COMMAND ${LADE_OBJCOPY} --localize-hidden ${out}/lade.o
    COMMAND ${CMAKE_AR} rcs ${out}/liblade.a ${out}/lade.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${out}/lade.o
    DEPENDS ${layers} ${archives} COMMENT "Combining liblade.a" VERBATIM)
  add_custom_target(lade_static ALL DEPENDS ${out}/liblade.a)

  # Where the package files lie, seen from the prefix, and the way back up.
  set(LADE_LIBDIR ${CMAKE_INSTALL_LIBDIR})
  file(RELATIVE_PATH LADE_PC_UP /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
  string(REGEX REPLACE "/$" "" LADE_PC_UP "${LADE_PC_UP}")
  list(JOIN LADE_SYSTEM_LIBS " " LADE_PC_LIBS)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/lade.pc.in ${CMAKE_CURRENT_BINARY_DIR}/lade.pc @ONLY)
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lade)
  configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/lade-config.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/lade-config.cmake INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
  write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/lade-config-version.cmake COMPATIBILITY SameMinorVersion)

  install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/lade DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
  install(TARGETS lade_shared EXPORT lade LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${out}/liblade.a DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lade.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(EXPORT lade NAMESPACE lade:: FILE lade-targets.cmake DESTINATION ${package})
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lade-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/lade-config-version.cmake
    DESTINATION ${package})
endfunction()
