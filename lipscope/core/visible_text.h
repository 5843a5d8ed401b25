#pragma once

#include <string>
#include <string_view>

namespace lipscope {

/// A text from outside (the name of a file, an option, a field of a record) as
/// a terminal may be given it. A terminal obeys control characters, and text
/// that changes its direction reads as what it is not. So these are written
/// out:
///
///   \x1b      control characters (below 0x20, and 0x7f)
///   \u009b    control characters beyond ASCII, and those that turn the
///             direction of the text
///   \xff      bytes that are not UTF-8
///
/// Newlines and tabs stay; everything else that is UTF-8 stays as it is.
std::string visible_text(std::string_view text);

/// The same for what stands on one line, as a name or the cell of a table does:
/// newlines and tabs are written out as well, \n and \t.
std::string visible_line(std::string_view text);

}  // namespace lipscope
