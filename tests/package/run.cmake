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
# the engine built alone: configured here, since it is compiled by the build
run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/engine_only -G Ninja -DLIPSCOPE_ENGINE_ONLY=ON
    ${no_other_packages})
expect_engine_alone(${WORK}/engine_only)
run(${WORK}/prefix/bin/lipscope --version)
