#pragma once

#include <memory>
#include <vector>

#include "lipscope/operators/map.h"

/// Maps and operators made of others. Each owns its parts; the chain rule is
/// written here and nowhere else.
namespace lipscope {

template <class Real>
using MapPtr = std::unique_ptr<Map<Real>>;
template <class Real>
using OperatorPtr = std::unique_ptr<LinearOperator<Real>>;

/// x ↦ outer(inner(x)); its Jacobian is J_outer(inner(x)) · J_inner(x).
template <class Real>
MapPtr<Real> compose(MapPtr<Real> outer, MapPtr<Real> inner);
/// x ↦ carry x + f(x); its Jacobian is carry I + J_f.
template <class Real>
MapPtr<Real> residual(MapPtr<Real> f, Real carry = 1);
/// x ↦ f(x) + g(x).
template <class Real>
MapPtr<Real> sum(MapPtr<Real> f, MapPtr<Real> g);
/// x ↦ c · f(x).
template <class Real>
MapPtr<Real> scale(Real c, MapPtr<Real> f);
/// f on each of `count` sequences of equal length, laid under one another; its
/// Jacobian is block-diagonal.
template <class Real>
MapPtr<Real> batch(MapPtr<Real> f, Index count);

/// The part of f that reads the input itself: the innermost map of a
/// composition, of what a residual is added to, of what is scaled; f itself
/// where f is none of these. Borrows f, which must outlive what is returned.
template <class Real>
const Map<Real>& first_map(const Map<Real>& f);

/// outer · inner.
template <class Real>
OperatorPtr<Real> compose(OperatorPtr<Real> outer, OperatorPtr<Real> inner);
/// carry I + a, for a square a.
template <class Real>
OperatorPtr<Real> residual(OperatorPtr<Real> a, Real carry = 1);
/// a + b.
template <class Real>
OperatorPtr<Real> sum(OperatorPtr<Real> a, OperatorPtr<Real> b);
/// c · a.
template <class Real>
OperatorPtr<Real> scale(Real c, OperatorPtr<Real> a);
/// The blocks down the diagonal, nothing elsewhere.
template <class Real>
OperatorPtr<Real> block_diagonal(std::vector<OperatorPtr<Real>> blocks);

}  // namespace lipscope
