#include "lipscope/attention/head.h"

#include "lipscope/attention/sigmoid.h"
#include "lipscope/attention/softmax.h"
#include "lipscope/core/errors.h"
#include "lipscope/core/gemm.h"

namespace lipscope {
namespace {

template <class Real>
MatrixOf<Real> multiply(const Factor<Real>& a, const Factor<Real>& b) {
  MatrixOf<Real> c(a.rows(), b.cols());
  gemm(a, b, view(c));
  return c;
}

// dP of dS, and gS of gP
template <class Real>
MatrixOf<Real> weights_derivative(const HeadState<Real>& head,
                                  MatrixOf<Real> t) {
  if (!head.weighting.sigmoid_shift)
    return softmax_derivative(head.p, std::move(t));
  return sigmoid_derivative(
      multiply(as_is(head.at.q), transposed(head.at.k)), head.weighting.mask,
      static_cast<Real>(*head.weighting.sigmoid_shift), std::move(t));
}

// Cotangents of scores and of their tangents
template <class Real>
struct ScoreCotangents {
  MatrixOf<Real> s, ds;
};

// dP = P∘(dS − r), r = rowsum(P∘dS). From gdP, the cotangent of dP, and gP,
// what P has of its own:
//
//   gdS = P∘(gdP − ρ),  ρ = rowsum(P∘gdP)
//   gP += gdP∘(dS − r) − ρ dS            (P stands in dP itself and in r)
//   gS  = P∘(gP − rowsum(P∘gP))
template <class Real>
ScoreCotangents<Real> back_through_softmax(const MatrixOf<Real>& p,
                                           const MatrixOf<Real>& ds,
                                           const MatrixOf<Real>& gdp,
                                           MatrixOf<Real> gp) {
  for (Index i = 0; i < p.rows(); ++i) {
    const Real r = p.row(i).dot(ds.row(i));
    const Real rho = p.row(i).dot(gdp.row(i));
    gp.row(i).array() +=
        gdp.row(i).array() * (ds.row(i).array() - r) - rho * ds.row(i).array();
  }
  return {softmax_derivative(p, std::move(gp)), softmax_derivative(p, gdp)};
}

// dP = P(1 − P)∘dS, entry by entry; d/dP of it is (1 − 2P)∘dS
template <class Real>
ScoreCotangents<Real> back_through_sigmoid(const HeadState<Real>& head,
                                           const MatrixOf<Real>& ds,
                                           const MatrixOf<Real>& gdp,
                                           MatrixOf<Real> gp) {
  gp.array() += gdp.array() * (1 - 2 * head.p.array()) * ds.array();
  return {weights_derivative(head, std::move(gp)),
          weights_derivative(head, gdp)};
}

}  // namespace

template <class Real>
HeadState<Real> head_state(HeadFeatures<Real> at, Weighting weighting) {
  MatrixOf<Real> scores = multiply(as_is(at.q), transposed(at.k));
  if (!scores.allFinite())
    throw RunError("attention: the scores overflow; the tokens are too large");
  if (weighting.log_mass.size() > 0)
    scores.rowwise() += weighting.log_mass.transpose().template cast<Real>();
  if (weighting.by_distance.size() > 0)
    for (Index i = 0; i < scores.rows(); ++i)
      scores.row(i) +=
          weighting.by_distance.segment(scores.rows() - 1 - i, scores.cols())
              .transpose()
              .template cast<Real>();
  MatrixOf<Real> p;
  if (weighting.sigmoid_shift) {
    p = sigmoid_rows(std::move(scores), weighting.mask,
                     static_cast<Real>(*weighting.sigmoid_shift));
  } else {
    std::vector<TokenRange> seen(scores.rows());
    for (Index i = 0; i < scores.rows(); ++i)
      seen[i] = weighting.visible(i, scores.cols());
    p = softmax_rows(std::move(scores), seen);
  }
  return {std::move(at), std::move(p), std::move(weighting)};
}

template <class Real>
MatrixOf<Real> head_forward(const HeadState<Real>& head) {
  return multiply(as_is(head.p), as_is(head.at.v));
}

template <class Real>
MatrixOf<Real> head_tangent(const HeadState<Real>& head,
                            const HeadFeatures<Real>& d) {
  // dS = dq kᵀ + q dkᵀ
  MatrixOf<Real> ds = multiply(as_is(d.q), transposed(head.at.k));
  gemm(as_is(head.at.q), transposed(d.k), view(ds), Into::add);
  // dy = dP v + P dv
  const MatrixOf<Real> dp = weights_derivative(head, std::move(ds));
  MatrixOf<Real> dy = multiply(as_is(dp), as_is(head.at.v));
  gemm(as_is(head.p), as_is(d.v), view(dy), Into::add);
  return dy;
}

template <class Real>
HeadFeatures<Real> head_cotangent(const HeadState<Real>& head,
                                  const MatrixOf<Real>& gy) {
  const MatrixOf<Real> gs =
      weights_derivative(head, multiply(as_is(gy), transposed(head.at.v)));
  return {.q = multiply(as_is(gs), as_is(head.at.k)),
          .k = multiply(transposed(gs), as_is(head.at.q)),
          .v = multiply(transposed(head.p), as_is(gy))};
}

template <class Real>
TangentCotangent<Real> head_tangent_cotangent(const HeadState<Real>& head,
                                              const HeadFeatures<Real>& d,
                                              const MatrixOf<Real>& gy) {
  const HeadFeatures<Real>& at = head.at;
  // dS = dq kᵀ + q dkᵀ, as in head_tangent
  MatrixOf<Real> ds = multiply(as_is(d.q), transposed(at.k));
  gemm(as_is(at.q), transposed(d.k), view(ds), Into::add);

  // dy = dP v + P dv
  const MatrixOf<Real> gdp = multiply(as_is(gy), transposed(at.v));
  MatrixOf<Real> gp = multiply(as_is(gy), transposed(d.v));
  const MatrixOf<Real> dp = weights_derivative(head, ds);
  const ScoreCotangents<Real> g =
      head.weighting.sigmoid_shift
          ? back_through_sigmoid(head, ds, gdp, std::move(gp))
          : back_through_softmax(head.p, ds, gdp, std::move(gp));

  TangentCotangent<Real> back;
  back.d = {.q = multiply(as_is(g.ds), as_is(at.k)),
            .k = multiply(transposed(g.ds), as_is(at.q)),
            .v = multiply(transposed(head.p), as_is(gy))};
  // S = q kᵀ, and dS once more
  back.at = {.q = multiply(as_is(g.s), as_is(at.k)),
             .k = multiply(transposed(g.s), as_is(at.q)),
             .v = multiply(transposed(dp), as_is(gy))};
  gemm(as_is(g.ds), as_is(d.k), view(back.at.q), Into::add);
  gemm(transposed(g.ds), as_is(d.q), view(back.at.k), Into::add);
  return back;
}

template HeadState<float> head_state(HeadFeatures<float>, Weighting);
template HeadState<double> head_state(HeadFeatures<double>, Weighting);
template MatrixOf<float> head_forward(const HeadState<float>&);
template MatrixOf<double> head_forward(const HeadState<double>&);
template MatrixOf<float> head_tangent(const HeadState<float>&,
                                      const HeadFeatures<float>&);
template MatrixOf<double> head_tangent(const HeadState<double>&,
                                       const HeadFeatures<double>&);
template HeadFeatures<float> head_cotangent(const HeadState<float>&,
                                            const MatrixOf<float>&);
template HeadFeatures<double> head_cotangent(const HeadState<double>&,
                                             const MatrixOf<double>&);
template TangentCotangent<float> head_tangent_cotangent(
    const HeadState<float>&, const HeadFeatures<float>&,
    const MatrixOf<float>&);
template TangentCotangent<double> head_tangent_cotangent(
    const HeadState<double>&, const HeadFeatures<double>&,
    const MatrixOf<double>&);

}  // namespace lipscope
