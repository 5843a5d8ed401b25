#pragma once

#include <string_view>

/// The files of page/ and Chart.js, which the build writes into the library
/// (cmake/page_parts.cmake).
namespace lipscope::page_parts {

extern const std::string_view html;    ///< with {{title}}, {{style}}, …
extern const std::string_view style;   ///< page.css
extern const std::string_view script;  ///< the .js files end to end
extern const std::string_view chart;   ///< Chart.js

}  // namespace lipscope::page_parts
