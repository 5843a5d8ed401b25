#include "lipscope/model/contraction.h"

#include <cmath>

#include "lipscope/attention/l2.h"

namespace lipscope {
namespace {

// the largest absolute sum of a row (or column), and which it is
struct Largest {
  double sum = 0.0;
  Index at = 0;
};

template <class Real>
Largest largest_row(const ConstView<Real>& w) {
  Largest l;
  l.sum = w.template cast<double>().cwiseAbs().rowwise().sum().maxCoeff(&l.at);
  return l;
}

template <class Real>
Largest largest_column(const ConstView<Real>& w) {
  Largest l;
  l.sum = w.template cast<double>().cwiseAbs().colwise().sum().maxCoeff(&l.at);
  return l;
}

// the factors of c, and the heads, rows and columns that attain them
struct Factors {
  double front = 0.0;  // 4p + 1/√k
  Largest output;      // a column of W_O
  Index query_head = 0, value_head = 0;
  Largest query_row, query_column, value_column;  // of those heads

  double product() const {
    return front * output.sum * query_row.sum * query_column.sum *
           value_column.sum;
  }
};

template <class Real>
Rectangle head_rectangle(const ConstView<Real>& w, Index h, Index heads) {
  const Index k = w.cols() / heads;
  return {0, h * k, w.rows(), k};
}

template <class Real>
Factors factors(const ConstL2Views<Real>& w, Index heads, Index n) {
  const double k = static_cast<double>(w.query.cols() / heads);
  Factors f;
  f.front = 4 * kim21_phi_inverse(n) + 1 / std::sqrt(k);
  f.output = largest_column(w.output);
  for (Index h = 0; h < heads; ++h) {
    const ConstView<Real> query =
        view(w.query, head_rectangle(w.query, h, heads));
    const ConstView<Real> value =
        view(w.value, head_rectangle(w.value, h, heads));
    const Largest row = largest_row(query), column = largest_column(query);
    if (h == 0 || row.sum * column.sum > f.query_row.sum * f.query_column.sum) {
      f.query_head = h;
      f.query_row = row;
      f.query_column = column;
    }
    const Largest v = largest_column(value);
    if (h == 0 || v.sum > f.value_column.sum) {
      f.value_head = h;
      f.value_column = v;
    }
  }
  return f;
}

}  // namespace

template <class Real>
double contraction(const ConstL2Views<Real>& w, Index heads, Index n) {
  return factors(w, heads, n).product();
}

template <class Real>
void contraction_backward(const ConstL2Views<Real>& w, Index heads, Index n,
                          double g, L2Views<Real> gradients) {
  const Factors f = factors(w, heads, n);
  // c = s₁ s₂ …:  ∂c/∂s₁ = c/s₁;  s = Σ|w|:  ∂s/∂w = sign(w)
  const double c = f.product();
  if (c == 0) return;
  const Rectangle query = head_rectangle(w.query, f.query_head, heads);
  const Rectangle value = head_rectangle(w.value, f.value_head, heads);
  const auto scale = [&](double sum) { return static_cast<Real>(g * c / sum); };
  gradients.output.col(f.output.at) +=
      scale(f.output.sum) * w.output.col(f.output.at).cwiseSign();
  view(gradients.query, query).row(f.query_row.at) +=
      scale(f.query_row.sum) *
      view(w.query, query).row(f.query_row.at).cwiseSign();
  view(gradients.query, query).col(f.query_column.at) +=
      scale(f.query_column.sum) *
      view(w.query, query).col(f.query_column.at).cwiseSign();
  view(gradients.value, value).col(f.value_column.at) +=
      scale(f.value_column.sum) *
      view(w.value, value).col(f.value_column.at).cwiseSign();
}

template <class Real>
double mlp_contraction(const ConstMlpViews<Real>& w, Activation activation) {
  return largest_column(w.up).sum * activation_slope(activation) *
         largest_column(w.down).sum;
}

template <class Real>
void mlp_contraction_backward(const ConstMlpViews<Real>& w,
                              Activation activation, double g,
                              MlpViews<Real> gradients) {
  const Largest up = largest_column(w.up), down = largest_column(w.down);
  // c = s_up L s_down:  ∂c/∂s_up = L s_down
  const double slope = g * activation_slope(activation);
  gradients.up.col(up.at) +=
      static_cast<Real>(slope * down.sum) * w.up.col(up.at).cwiseSign();
  gradients.down.col(down.at) +=
      static_cast<Real>(slope * up.sum) * w.down.col(down.at).cwiseSign();
}

template double contraction(const ConstL2Views<float>&, Index, Index);
template double contraction(const ConstL2Views<double>&, Index, Index);
template void contraction_backward(const ConstL2Views<float>&, Index, Index,
                                   double, L2Views<float>);
template void contraction_backward(const ConstL2Views<double>&, Index, Index,
                                   double, L2Views<double>);

template double mlp_contraction(const ConstMlpViews<float>&, Activation);
template double mlp_contraction(const ConstMlpViews<double>&, Activation);
template void mlp_contraction_backward(const ConstMlpViews<float>&, Activation,
                                       double, MlpViews<float>);
template void mlp_contraction_backward(const ConstMlpViews<double>&, Activation,
                                       double, MlpViews<double>);

}  // namespace lipscope
