#pragma once

#include <optional>
#include <vector>

#include "lipscope/core/matrix.h"

namespace lipscope {

/// A constant measured at a sequence of n tokens, and the radius of that
/// sequence, (mean |x_i|²)^½.
struct GrowthPoint {
  Index n = 0;
  double value = 0.0;
  double radius = 0.0;
};

/// c·n^α through measured constants: least squares of ln value on ln n.
struct GrowthFit {
  Index points = 0;
  double exponent = 0.0;         ///< α
  double low = 0.0, high = 0.0;  ///< of α, at the confidence asked for
  double constant = 0.0;         ///< c
  double r_squared = 0.0;        ///< the part of the variance that n explains
  /// Pearson's, of ln value with ln radius; nothing where either is constant.
  std::optional<double> radius_correlation;
};

/// In one order, whoever measured them and when: sums are then the same to the
/// last bit.
void sort_points(std::vector<GrowthPoint>& points);

/// The fit and its confidence interval, from Student's distribution with
/// points − 2 degrees of freedom: it takes the residuals for independent,
/// normal and alike at all lengths. Nothing where there are fewer than four
/// different lengths, through which almost any curve goes; points with a value
/// that is not positive are left out.
std::optional<GrowthFit> fit_growth(const std::vector<GrowthPoint>& points,
                                    double confidence = 0.95);

}  // namespace lipscope
