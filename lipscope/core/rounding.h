#pragma once

namespace lipscope {

/// u = 2⁻⁵³: an operation in f64 that rounds to nearest is off by at most u
/// times its result.
inline constexpr double unit_roundoff = 0x1p-53;

/// The next double above x ≥ 0; 0 stays 0. One of these after a correctly
/// rounded operation makes its result an upper bound.
double next_above(double x);

/// x (1 + 2⁻⁴⁴): above the exact result of up to a hundred operations that
/// round to nearest, on numbers ≥ 0 and without subtraction.
double well_above(double x);

}  // namespace lipscope
