# Libraries that have no CMake package of their own, or none that can be used
# (Debian's dnnl-config.cmake asks for OpenCL, which nothing here needs). The
# build includes this file, and so does lipscope-config.cmake, beside which it is
# installed.

# lipscope_library(NAME HEADER FILE PACKAGE) finds a library by a header and by its
# file (empty: it is headers alone), and makes the target lipscope::NAME of what was
# found. What is missing is added to LIPSCOPE_MISSING, with the Debian package
# that has it.
function(lipscope_library name header file package)
  if(TARGET lipscope::${name})
    return()
  endif()
  string(TOUPPER LIPSCOPE_${name} prefix)
  find_path(${prefix}_INCLUDE_DIR ${header})
  set(wanted ${prefix}_INCLUDE_DIR)
  if(file)
    find_library(${prefix}_LIBRARY ${file})
    list(APPEND wanted ${prefix}_LIBRARY)
  endif()
  mark_as_advanced(${wanted})
  foreach(variable ${wanted})
    if(NOT ${variable})
      list(APPEND LIPSCOPE_MISSING "${name} (Debian: ${package})")
      set(LIPSCOPE_MISSING "${LIPSCOPE_MISSING}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  if(file)
    add_library(lipscope::${name} UNKNOWN IMPORTED)
    set_target_properties(lipscope::${name} PROPERTIES IMPORTED_LOCATION "${${prefix}_LIBRARY}")
  else()
    add_library(lipscope::${name} INTERFACE IMPORTED)
  endif()
  set_target_properties(lipscope::${name} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${${prefix}_INCLUDE_DIR}")
endfunction()

# lipscope_package(PACKAGE NAME [ARGUMENTS]) is find_package(NAME ARGUMENTS); what
# is missing is added to LIPSCOPE_MISSING as well.
macro(lipscope_package package name)
  find_package(${name} ${ARGN} QUIET)
  if(NOT ${name}_FOUND)
    list(APPEND LIPSCOPE_MISSING "${name} (Debian: ${package})")
  endif()
endmacro()

# The end of the configuration if something is missing, with the line to run.
function(lipscope_require_found)
  if(NOT LIPSCOPE_MISSING)
    return()
  endif()
  string(REGEX MATCHALL "Debian: [^)]+" packages "${LIPSCOPE_MISSING}")
  list(TRANSFORM packages REPLACE "Debian: " "")
  list(REMOVE_DUPLICATES packages)
  list(JOIN packages " " line)
  message(FATAL_ERROR "lipscope needs libraries that were not found: ${LIPSCOPE_MISSING}\n"
    "On Debian:\n  apt-get install -y --no-install-recommends ${line}")
endfunction()

# what lipscope::engine is linked with
macro(lipscope_engine_libraries)
  lipscope_library(dnnl dnnl.h dnnl libdnnl-dev)
endmacro()

# what the tokenizers and tables of lipscope::lipscope are linked with
macro(lipscope_text_libraries)
  lipscope_library(pcre2 pcre2.h pcre2-8 libpcre2-dev)
  lipscope_library(utf8proc utf8proc.h utf8proc libutf8proc-dev)
endmacro()
