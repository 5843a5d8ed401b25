#pragma once

#include <string>

/// Numbers as people read them: with six digits.
namespace lipscope {

std::string six_digits(double value);

// Of a number that is known from one side the digits say no more than it does:
// the last one is rounded to that side. A thousandth of the last digit does not
// count: a bound of 1 + 4e-12 is shown as 1.

std::string six_digits_above(double value);  ///< of what is at most this
std::string six_digits_below(double value);  ///< of what is at least this

}  // namespace lipscope
