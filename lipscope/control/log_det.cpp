#include "lipscope/control/log_det.h"

#include <Eigen/LU>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <vector>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/core/rng.h"
#include "lipscope/theory/magnitude.h"

namespace lipscope {
namespace {

// N q^{K+1}/((K+1)(1−q)), from above
double cut_off(Index n, double q, int terms) {
  const double k = terms + 1.0;
  return well_above(static_cast<double>(n) * std::pow(q, k) / (k * (1.0 - q)));
}

int enough_terms(Index n, double q, double most) {
  constexpr int limit = 1000000;
  int terms = 1;
  while (cut_off(n, q, terms) > most && terms < limit) ++terms;
  require(terms < limit, "log_det: more than {} terms at contraction {}", limit,
          q);
  return terms;
}

Vector random_signs(Index size, Rng rng) {
  Vector v(size);
  for (Index i = 0; i < size; ++i) v[i] = rng.next() >> 63 ? 1.0 : -1.0;
  return v;
}

}  // namespace

LogDet log_det(const LinearOperator<double>& a, const LogDetOptions& o) {
  const Index n = a.cols();
  require(a.rows() == n && n > 0, "log_det: a [{}x{}] operator", a.rows(), n);
  const double q = o.contraction;
  require(q >= 0.0 && q < 1.0, "log_det: a contraction of {}", q);
  require(o.probes >= 2, "log_det: {} probes have no error bar", o.probes);
  require(o.terms >= 0 && o.truncation > 0.0, "log_det: {} terms, cut at {}",
          o.terms, o.truncation);
  require(o.confidence > 0.0 && o.confidence < 1.0, "log_det: confidence {}",
          o.confidence);

  LogDet result;
  result.probes = o.probes;
  result.terms = o.terms > 0 ? o.terms : enough_terms(n, q, o.truncation);
  result.truncation = cut_off(n, q, result.terms);

  Vector sums(o.probes);
  parallel_for(o.probes, o.threads, [&](Index i) {
    const Vector v = random_signs(n, Rng(o.seed).split(i));
    Vector power = v;  // Aᵏv
    double sum = 0.0;
    for (int k = 1; k <= result.terms; ++k) {
      power = a.apply(power);
      sum += (k % 2 == 1 ? 1.0 : -1.0) * v.dot(power) / k;
    }
    sums[i] = sum;
  });
  if (!sums.allFinite())
    throw RunError(
        fmt::format("log_det: not finite after {} terms; is the "
                    "contraction really {}?",
                    result.terms, q));
  result.value = sums.mean();
  const double m = static_cast<double>(o.probes);
  const double variance =
      (sums.array() - result.value).square().sum() / (m - 1.0);
  const boost::math::students_t student(m - 1.0);
  result.error_bar =
      boost::math::quantile(student, (1.0 + o.confidence) / 2.0) *
      std::sqrt(variance / m);
  return result;
}

double log_det_dense(const LinearOperator<double>& a) {
  require(a.rows() == a.cols(), "log_det_dense: a [{}x{}] operator", a.rows(),
          a.cols());
  Matrix m = materialize(a);
  m.diagonal().array() += 1.0;
  const Eigen::PartialPivLU<Matrix> lu(m);
  return lu.matrixLU().diagonal().array().abs().log().sum();
}

}  // namespace lipscope
