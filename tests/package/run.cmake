# Installs the build, builds a consumer of each component against it, and runs it.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# what only the whole library needs must not be looked for by those who want the
# engine alone
set(no_other_packages -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON
  -DCMAKE_DISABLE_FIND_PACKAGE_OpenSSL=ON -DCMAKE_DISABLE_FIND_PACKAGE_CLI11=ON)
function(expect_engine_alone folder)
  foreach(file build.ninja CMakeCache.txt)
    file(READ ${folder}/${file} text)
    string(REGEX MATCH "libpcre2|libutf8proc|libcrypto|[Cc]hart.*js|CLI11_DIR" other "${text}")
    if(other)
      message(FATAL_ERROR "${folder}/${file} mentions ${other}")
    endif()
  endforeach()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix)
foreach(part lipscope engine)
  set(options -DPART=${part} -DCMAKE_PREFIX_PATH=${WORK}/prefix -DCMAKE_BUILD_TYPE=Debug)
  if(part STREQUAL "engine")
    list(APPEND options ${no_other_packages})
  endif()
  run(${CMAKE_COMMAND} -S ${CONSUMER} -B ${WORK}/${part} -G Ninja ${options})
  run(${CMAKE_COMMAND} --build ${WORK}/${part})
  run(${WORK}/${part}/consumer)
endforeach()
expect_engine_alone(${WORK}/engine)

# The program of docs/cpp.md, whole; then cut off in the middle of a record, as
# a kill would do, and started again. It makes the same file.
function(audit expected)
  execute_process(COMMAND ${WORK}/lipscope/audit WORKING_DIRECTORY ${WORK}/lipscope
    OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  if(NOT said STREQUAL "16 rows, ${expected} of them from before\n")
    message(FATAL_ERROR "the audit said '${said}' and not that ${expected} were there")
  endif()
endfunction()
set(records ${WORK}/lipscope/audit.jsonl)
audit(0)
file(STRINGS ${records} whole)
file(WRITE ${records} "")
foreach(i RANGE 4)
  list(GET whole ${i} line)
  file(APPEND ${records} "${line}\n")
endforeach()
list(GET whole 5 line)
string(SUBSTRING "${line}" 0 200 line)
file(APPEND ${records} "${line}")
audit(5)
file(STRINGS ${records} again)
list(LENGTH whole before)
list(LENGTH again after)
if(NOT before EQUAL after OR NOT EXISTS ${WORK}/lipscope/report.html)
  message(FATAL_ERROR "${before} lines before the kill, ${after} after it")
endif()
# the engine built alone: configured here, since it is compiled by the build
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/engine_only -G Ninja -DLIPSCOPE_ENGINE_ONLY=ON
    ${no_other_packages})
expect_engine_alone(${WORK}/engine_only)
run(${WORK}/prefix/bin/lipscope --version)
