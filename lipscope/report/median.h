#pragma once

#include <vector>

namespace lipscope {

/// The middle of the values in order; of an even number of them, the mean of
/// the two middle ones. Infinite values count as the largest or the least;
/// the mean of an infinite and a finite value is infinite, and that of −∞ and
/// +∞ is +∞. There must be at least one value, and none may be NaN.
///
/// Tables and the page (report/page/data.js) take every median by this rule.
double median(std::vector<double> values);

/// log10 of the median of positive numbers of which log10 is given, for numbers
/// beyond double:
///
///   log10((10^a + 10^b) / 2) = b + log10((1 + 10^(a − b)) / 2),   a ≤ b.
///
/// −∞ is the logarithm of 0.
double median_log10(std::vector<double> logarithms);

}  // namespace lipscope
