#include "lipscope/attention/weights.h"

#include "lipscope/attention/kinds.h"
#include "lipscope/core/errors.h"

namespace lipscope {
namespace {

void require_finite(const char* what, const Matrix& m) {
  if (m.allFinite()) return;
  for (Index i = 0; i < m.rows(); ++i)
    for (Index j = 0; j < m.cols(); ++j)
      require(std::isfinite(m(i, j)), "{}: entry ({}, {}) is {}", what, i, j,
              m(i, j));
}

void require_bias(const char* what, const Vector& bias, Index columns) {
  require(bias.size() == 0 || bias.size() == columns,
          "{}: {} numbers for {} columns", what, bias.size(), columns);
  for (Index i = 0; i < bias.size(); ++i)
    require(std::isfinite(bias[i]), "{}: entry {} is {}", what, i, bias[i]);
}

}  // namespace

void require_sound(const AttentionWeights& w, Kind kind) {
  require(w.heads >= 1, "heads: {} heads", w.heads);
  require(w.groups() >= 1 && w.heads % w.groups() == 0,
          "heads: {} heads do not divide among {} key heads", w.heads,
          w.groups());
  require(w.query.size() > 0, "q: no query weights");
  require(w.value.size() > 0, "v: no value weights");
  require(w.query.cols() % w.heads == 0,
          "q: {} columns do not divide into {} heads", w.query.cols(), w.heads);
  require(w.value.cols() % w.groups() == 0,
          "v: {} columns do not divide into {} heads", w.value.cols(),
          w.groups());
  require(w.value.rows() == w.query.rows(), "v: {} rows, q has {}",
          w.value.rows(), w.query.rows());

  if (kind_of(kind).tied) {
    require(w.key.size() == 0 && w.key_bias.size() == 0,
            "k: {} attention is tied to q and has no key of its own",
            name_of(kind));
  } else {
    require(w.key.rows() == w.query.rows() &&
                w.key.cols() == w.groups() * w.query_width(),
            "k: [{}x{}], q is [{}x{}] with {} heads for {} key heads",
            w.key.rows(), w.key.cols(), w.query.rows(), w.query.cols(), w.heads,
            w.groups());
  }
  const Index mixed = w.heads * w.value_width();
  require(w.output.size() == 0 || w.output.rows() == mixed,
          "o: {} rows for {} columns of v", w.output.rows(), mixed);
  require(w.output.size() > 0 || w.output_bias.size() == 0,
          "o_bias: a bias of an output projection that is not there");

  require_finite("q", w.query);
  require_finite("k", w.key);
  require_finite("v", w.value);
  require_finite("o", w.output);
  require_bias("q_bias", w.query_bias, w.query.cols());
  require_bias("k_bias", w.key_bias, w.key.cols());
  require_bias("v_bias", w.value_bias, w.value.cols());
  require_bias("o_bias", w.output_bias, w.output.cols());
}

}  // namespace lipscope
