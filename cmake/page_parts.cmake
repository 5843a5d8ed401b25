# Writes the files of lipscope/report/page/ and Chart.js as C++ strings:
#   cmake -DPAGE=dir -DCHART=chart.min.js -DOUT=page_parts.cpp -DSCRIPTS=a.js;b.js -P page_parts.cmake

function(part name)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${file} content)
    string(APPEND text "${content}")
  endforeach()
  string(FIND "${text}" ")lipscope\"" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${ARGN}: contains )lipscope\", the end of its own string")
  endif()
  file(APPEND ${OUT}.new "const std::string_view ${name} = R\"lipscope(${text})lipscope\";\n")
endfunction()

file(WRITE ${OUT}.new "#include \"lipscope/report/page_parts.h\"\n\nnamespace lipscope::page_parts {\n")
part(html ${PAGE}/page.html)
part(style ${PAGE}/page.css)
list(TRANSFORM SCRIPTS PREPEND ${PAGE}/)
part(script ${SCRIPTS})
part(chart ${CHART})
file(APPEND ${OUT}.new "}  // namespace lipscope::page_parts\n")
file(RENAME ${OUT}.new ${OUT})
