# Writes a source file with the commit that is built; run at every build by the
# target lipscope_commit, since HEAD may have moved, and leaves the file alone where
# nothing changed:
#   cmake -DSOURCE=dir -DOUT=commit.cpp -P commit.cmake
set(commit unknown)
# a source archive has no .git, and a repository around it is not its own
if(EXISTS ${SOURCE}/.git)
  execute_process(COMMAND git -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=-modified
    RESULT_VARIABLE failed OUTPUT_VARIABLE found ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(failed EQUAL 0)
    set(commit ${found})
  endif()
endif()
file(CONFIGURE OUTPUT ${OUT} @ONLY CONTENT [[
#include "lipscope/core/version.h"

namespace lipscope {

const char* commit() { return "@commit@"; }

}  // namespace lipscope
]])
