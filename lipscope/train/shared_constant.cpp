#include "lipscope/train/shared_constant.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "lipscope/control/contractive.h"
#include "lipscope/control/spectral_trim.h"
#include "lipscope/core/gemm.h"
#include "lipscope/core/parallel.h"
#include "lipscope/theory/l2_kernel.h"
#include "lipscope/theory/mlp_bound.h"
#include "lipscope/theory/norms.h"

namespace lipscope {
namespace {

// Scaling in f32 rounds each entry by a relative 2⁻²⁴, and so moves ‖W‖₂ by at
// most 2⁻²³‖W‖_F: less than this for matrices of rank up to 6000
constexpr double margin = 1e-5;

// A factor of the constant: 1 + L of a branch, L of the head.
struct Part {
  enum class Kind { attention, mlp, head };

  Kind kind;
  Slot query = {};          // W_Q of attention
  Slot first = {}, second;  // W_V and W_O, W_up and W_down, the head's W

  double share() const { return kind == Kind::attention ? 0.5 : 1.0; }
};

// L of a part, and the norms of what is trimmed to make it smaller
struct Size {
  double constant = 0.0;
  double first = 0.0, second = 0.0;  // attention: second is ‖[U_h/t_h]‖
  std::vector<double> balance = {};  // t_h
};

double log_factor(const Part& part, double constant) {
  return part.kind == Part::Kind::head ? std::log(constant)
                                       : std::log1p(constant);
}

class Constant {
 public:
  Constant(const LanguageModel<float>& model, VectorOf<float>& weights,
           int threads)
      : config_(model.config()),
        kernel_(l2_kernel(config_.context, Mask::causal)),
        weights_(weights),
        threads_(threads) {
    const auto slot = [&](Index layer, const char* name) {
      return model.layout().slot(fmt::format("h.{}.{}.weight", layer, name));
    };
    for (Index i = 0; i < config_.layers; ++i) {
      parts_.push_back({.kind = Part::Kind::attention,
                        .query = slot(i, "attn.q"),
                        .first = slot(i, "attn.v"),
                        .second = slot(i, "attn.o")});
      parts_.push_back({.kind = Part::Kind::mlp,
                        .first = slot(i, "mlp.up"),
                        .second = slot(i, "mlp.down")});
    }
    parts_.push_back({.kind = Part::Kind::head,
                      .second = model.layout().slot("lm_head.weight")});
    sizes_.resize(parts_.size());
    for_parts([&](std::size_t i) { sizes_[i] = size_of(parts_[i]); });
  }

  void bring_below(double limit) {
    if (sum_cut_at(infinity) <= std::log(limit)) return;
    const double level = level_below(std::log(limit));
    for_parts([&](std::size_t i) {
      const Part& part = parts_[i];
      const double log = part.share() * level;
      const double most =
          part.kind == Part::Kind::head ? std::exp(log) : std::expm1(log);
      shrink(part, sizes_[i], most * (1.0 - margin));
    });
  }

 private:
  static constexpr double infinity = std::numeric_limits<double>::infinity();

  template <class Task>
  void for_parts(const Task& task) {
    parallel_for(static_cast<Index>(parts_.size()), threads_,
                 [&](Index i) { task(static_cast<std::size_t>(i)); });
  }

  // Σ_i min(log factor_i, share_i t)
  double sum_cut_at(double level) const {
    double sum = 0.0;
    for (std::size_t i = 0; i < parts_.size(); ++i)
      sum += std::min(log_factor(parts_[i], sizes_[i].constant),
                      parts_[i].share() * level);
    return sum;
  }

  // the largest t that leaves the sum at or below that
  double level_below(double sum) const {
    double low = 0.0, high = 1.0;
    while (sum_cut_at(high) <= sum) high *= 2.0;
    for (int halving = 0; halving < 60; ++halving) {
      const double middle = (low + high) / 2;
      (sum_cut_at(middle) <= sum ? low : high) = middle;
    }
    return low;
  }

  Matrix exact(Slot s) const { return tensor(weights_, s).cast<double>(); }

  Size size_of(const Part& part) const {
    if (part.kind == Part::Kind::attention) {
      const AttentionWeights w{.query = exact(part.query),
                               .value = exact(part.first),
                               .output = exact(part.second),
                               .heads = config_.heads};
      std::vector<HeadWeights> heads;
      for (Index h = 0; h < w.heads; ++h) heads.push_back(head(w, h));
      const L2PathNorms norms = l2_path_norms(heads);
      return {.constant = (kernel_ * l2_path_factor(norms)).value(),
              .second = norms.path,
              .balance = norms.balance};
    }
    const double second = weight_norm_above(exact(part.second));
    if (part.kind == Part::Kind::head)
      return {.constant = second, .second = second};
    const double first = weight_norm_above(exact(part.first));
    return {.constant = mlp_bound(first, second, config_.activation).value(),
            .first = first,
            .second = second};
  }

  void shrink(const Part& part, Size& size, double most) {
    if (size.constant <= most) return;
    const double share = 1.0 - most / size.constant;
    if (share < most_trimmed) {
      trim(part, size, share);
      size = size_of(part);
      if (size.constant <= most) return;
    }
    scale(part, most / size.constant * (1.0 - margin));
  }

  // the share is taken off the leading directions of one matrix, or half of it
  // off each of two
  void trim(const Part& part, const Size& size, double share) {
    View<float> second = tensor(weights_, part.second);
    switch (part.kind) {
      case Part::Kind::attention: {
        const MatrixOf<float> y =
            static_cast<float>(-share) *
            leading_directions(path(part, size.balance), size.second);
        const MatrixOf<float> w = second;
        gemm<float>(as_is(w), as_is(y), second, Into::add);
        return;
      }
      case Part::Kind::mlp: {
        View<float> first = tensor(weights_, part.first);
        first = spectral_trim<float>(first, size.first, share / 2);
        second = spectral_trim<float>(second, size.second, share / 2);
        return;
      }
      case Part::Kind::head:
        second = spectral_trim<float>(second, size.second, share);
    }
  }

  // [U_h/t_h] of theory/l2_kernel.h: what multiplies W_O from the right does so
  // with it
  MatrixOf<float> path(const Part& part,
                       const std::vector<double>& balance) const {
    const ConstView<float> q = tensor(std::as_const(weights_), part.query);
    const ConstView<float> v = tensor(std::as_const(weights_), part.first);
    const ConstView<float> o = tensor(std::as_const(weights_), part.second);
    const Index d = config_.width, k = d / config_.heads;
    MatrixOf<float> u(d, d);
    for (Index h = 0; h < config_.heads; ++h) {
      const Rectangle columns{0, h * k, d, k}, rows{h * k, 0, k, d};
      MatrixOf<float> inner(k, k);
      gemm<float>(transposed(view(q, columns)), as_is(view(v, columns)),
                  view(inner));
      gemm<float>(as_is(inner), as_is(view(o, rows)), view(u, rows));
      view(u, rows) /= static_cast<float>(balance[static_cast<std::size_t>(h)]);
    }
    return u;
  }

  void scale(const Part& part, double factor) {
    View<float> second = tensor(weights_, part.second);
    if (part.kind == Part::Kind::head) {
      second *= static_cast<float>(factor);
      return;
    }
    const auto root = static_cast<float>(std::sqrt(factor));
    tensor(weights_, part.first) *= root;
    second *= root;
  }

  const LanguageModelConfig& config_;
  Magnitude kernel_;
  VectorOf<float>& weights_;
  int threads_;
  std::vector<Part> parts_;
  std::vector<Size> sizes_;
};

}  // namespace

void share_constant(const LanguageModel<float>& model, VectorOf<float>& weights,
                    double limit, int threads) {
  Constant(model, weights, threads).bring_below(limit);
}

}  // namespace lipscope
