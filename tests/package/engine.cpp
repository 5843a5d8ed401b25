// An operator of one's own needs the engine alone: the norm of
// diag(1, 2, ..., 50) is 50.

#include <lipscope/spectral/golub_kahan.h>

#include <cmath>
#include <cstdio>

namespace {

using lipscope::Index;
using lipscope::Vector;

class Diagonal final : public lipscope::LinearOperator<double> {
 public:
  Index rows() const override { return entries_.size(); }
  Index cols() const override { return entries_.size(); }
  Vector apply(const Vector& v) const override {
    return entries_.cwiseProduct(v);
  }
  Vector apply_adjoint(const Vector& u) const override {
    return entries_.cwiseProduct(u);
  }

 private:
  Vector entries_ = Vector::LinSpaced(50, 1.0, 50.0);
};

}  // namespace

int main() {
  const double norm =
      lipscope::golub_kahan(Diagonal(), {.tolerance = 1e-10}).value;
  std::printf("%.15g\n", norm);
  return std::abs(norm - 50) < 1e-12 * 50 ? 0 : 1;
}
