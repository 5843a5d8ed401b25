#include "lipscope/search/region.h"

#include <cmath>

#include "lipscope/core/errors.h"

namespace lipscope {

bool Region::bounded() const { return std::isfinite(radius); }

std::string Region::scope() const {
  if (gain.size() > 0) return "what the norm layer lets through";
  return bounded() ? fmt::format("ball of radius {}", radius) : "everywhere";
}

Region everywhere() { return {}; }

Region ball(double radius) {
  require(radius > 0.0 && std::isfinite(radius),
          "ball: a radius of {}, expected a positive number", radius);
  return {.radius = radius};
}

Region after_norm(const NormWeights& norm) {
  require_sound(norm);
  return {.radius = std::sqrt(static_cast<double>(norm.gain.size())),
          .gain = norm.gain,
          .bias = norm.bias,
          .centred = norm.kind == NormWeights::Kind::layer};
}

Matrix tokens_of(const Region& region, const Matrix& z) {
  Matrix x = z;
  if (region.gain.size() > 0) x = x * region.gain.asDiagonal();
  if (region.bias.size() > 0) x.rowwise() += region.bias.transpose();
  return x;
}

Matrix coordinates_of(const Region& region, const Matrix& x) {
  Matrix z = x;
  if (region.bias.size() > 0) z.rowwise() -= region.bias.transpose();
  if (region.gain.size() > 0)
    z = z *
        region.gain.unaryExpr([](double g) { return g == 0.0 ? 0.0 : 1.0 / g; })
            .asDiagonal();
  return nearest(region, std::move(z));
}

Matrix pulled_back(const Region& region, const Matrix& gx) {
  Matrix gz = gx;
  if (region.gain.size() > 0) gz = gz * region.gain.asDiagonal();
  if (region.centred) gz.colwise() -= gz.rowwise().mean().eval();
  return gz;
}

Matrix nearest(const Region& region, Matrix z) {
  // first onto the plane, then within it towards its origin: together that is
  // the nearest point, since the ball is centred in the plane
  if (region.centred) z.colwise() -= z.rowwise().mean().eval();
  if (!region.bounded()) return z;
  for (Index i = 0; i < z.rows(); ++i) {
    const double length = z.row(i).norm();
    if (length > region.radius) z.row(i) *= region.radius / length;
  }
  return z;
}

}  // namespace lipscope
