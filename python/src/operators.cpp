// The norm of any operator: an array, or functions of Python.

#include <fmt/format.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>

#include <cmath>
#include <utility>

#include "bindings.h"
#include "callback_operator.h"
#include "lipscope/core/rng.h"
#include "lipscope/record/records.h"
#include "lipscope/spectral/estimate.h"
#include "lipscope/spectral/inf_norm.h"
#include "lipscope/spectral/token_norm.h"

namespace lipscope::python {
namespace {

// matvec and rmatvec
struct Functions {
  nb::object matvec, rmatvec;
};

Functions functions_of(const nb::tuple& pair) {
  return {nb::object(pair[0]), nb::object(pair[1])};
}

struct Effort {
  double enclose, tolerance;
  int max_steps;
  double delta;
  std::uint64_t seed;
  int threads;
  bool from_above = true;
  Vector likely = {};  // where to start, or empty
};

Vector likely_of(nb::handle likely) {
  return likely.is_none() ? Vector() : Array(likely, "likely").to_vector();
}

MeasureOptions options_of(const Effort& e) {
  return {.tolerance = e.tolerance,
          .max_steps = e.max_steps,
          .enclose = e.enclose,
          .from_above = e.from_above,
          .delta = e.delta,
          .seed = e.seed,
          .threads = e.threads,
          .keep_going =
              [](int) {
                raise_signals();
                return true;
              },
          .likely = e.likely};
}

template <class Value>
nb::object or_none(const std::optional<Value>& value) {
  return value ? nb::cast(*value) : nb::none();
}

nlohmann::ordered_json json_of(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(*value) : nullptr;
}

// Violation where functions that are no operator, or a bug, put the lower
// number above an upper one
nb::dict answer(const Measurement& m) {
  check_sides({{"lower", m.lower},
               {"upper", json_of(m.upper)},
               {"upper_whp", json_of(m.upper_whp)}});
  nb::dict found;
  found["lower"] = m.lower;
  found["lower_by"] = name_of(m.lower_by);
  found["upper"] = or_none(m.upper);
  found["upper_by"] =
      m.upper ? nb::cast(name_of(NormMethod::dense_gram)) : nb::none();
  found["upper_whp"] = or_none(m.upper_whp);
  found["delta"] = m.delta;
  found["residual"] = m.residual;
  found["steps"] = m.steps;
  found["converged"] = m.converged;
  found["direction"] = to_numpy(m.direction);
  return found;
}

nb::dict answer(const InfNorm& m) {
  nb::dict found;
  found["lower"] = m.value;
  found["lower_by"] = name_of(NormMethod::row_sweep);
  // every row is summed: the value is the norm itself up to rounding
  found["upper"] = m.value * (1 + 1e-9);
  found["upper_by"] = name_of(NormMethod::row_sweep);
  found["upper_whp"] = m.value * (1 + 1e-9);
  found["delta"] = nb::none();
  found["residual"] = nb::none();
  found["steps"] = m.rows;
  found["converged"] = true;
  found["direction"] = to_numpy(m.direction);
  return found;
}

nb::dict answer(const TokenNorm& m) {
  nb::dict found;
  found["lower"] = m.value;
  found["lower_by"] = name_of(NormMethod::alternating);
  found["upper"] = found["upper_by"] = found["upper_whp"] = nb::none();
  found["delta"] = found["residual"] = nb::none();
  found["steps"] = m.steps;
  found["converged"] = m.converged;
  found["direction"] = to_numpy(m.direction);
  return found;
}

// ⟨A v, u⟩ = ⟨v, Aᵀ u⟩ at random v and u, up to rounding. All that is said from
// above rests on it.
template <class Real>
void require_adjoint(const LinearOperator<Real>& a, std::uint64_t seed) {
  const Rng rng = Rng(seed).split(std::uint64_t{1} << 61);
  const Vector v = random_direction(a.cols(), rng.split(0));
  const Vector u = random_direction(a.rows(), rng.split(1));
  const Vector image = a.apply(v.cast<Real>()).template cast<double>();
  const Vector pullback =
      a.apply_adjoint(u.cast<Real>()).template cast<double>();
  const double forth = image.dot(u), back = pullback.dot(v);
  const double size = std::max(image.norm(), pullback.norm());
  const double allowed = sizeof(Real) == 4 ? 1e-3 : 1e-6;
  if (!std::isfinite(size))
    throw nb::value_error("op: a product with a random vector is not finite");
  if (std::abs(forth - back) > allowed * size)
    throw nb::value_error(
        fmt::format("op: rmatvec is not the adjoint of matvec: <A v, u> = "
                    "{:.9g} and <v, A^T u> = {:.9g} at random v and u",
                    forth, back)
            .c_str());
}

// A copy is made of nothing; products are made on the array as it lies.
nb::dict array_norm(nb::handle array, const std::string& norm, Index tokens,
                    const Effort& effort) {
  const Array given(array, "op");
  const auto matrix = given.matrix();
  const MeasureOptions options = options_of(effort);
  const auto in_f64 = [&](const LinearOperator<double>& a) -> nb::dict {
    if (norm == "inf") {
      const InfNorm found = [&] {
        const nb::gil_scoped_release free;
        // a row is there already: nothing is too much to sweep
        return inf_norm(
            a, {.max_entries = a.rows() * a.cols(), .threads = effort.threads});
      }();
      return answer(found);
    }
    const TokenNorm found = [&] {
      const nb::gil_scoped_release free;
      return token_norm(a, tokens, {.seed = effort.seed});
    }();
    return answer(found);
  };
  {
    const nb::gil_scoped_release free;
    given.require_finite();
  }
  return std::visit(
      [&]<class Stored>(const StridedMatrix<Stored>& m) {
        const MatrixOperator<Stored, double> witness(m, effort.threads);
        if (norm != "2") return in_f64(witness);
        const Measurement found = [&] {
          const nb::gil_scoped_release free;
          if constexpr (std::is_same_v<Stored, float>)
            return measure_norm(MatrixOperator<float, float>(m, effort.threads),
                                witness, options);
          else
            return measure_norm(witness, options);
        }();
        return answer(found);
      },
      matrix);
}

// Functions in f32 round in a way that nothing here knows: what they say from
// below is rounded as they round, and nothing is said from above.
nb::dict callback_norm(const nb::tuple& functions, Index rows, Index cols,
                       bool f32, const std::string& norm, Index tokens,
                       const Effort& effort) {
  const auto [matvec, rmatvec] = functions_of(functions);
  const CallbackOperator<float> in_f32(matvec, rmatvec, rows, cols);
  const CallbackOperator<double> in_f64(matvec, rmatvec, rows, cols);
  const Widened widened(in_f32);
  const LinearOperator<double>& witness =
      f32 ? static_cast<const LinearOperator<double>&>(widened) : in_f64;
  if (norm == "inf") {
    const InfNorm swept = [&] {
      const nb::gil_scoped_release free;
      // functions of Python are called one after another
      return inf_norm(witness, {.threads = 1});
    }();
    nb::dict found = answer(swept);
    if (f32)
      found["upper"] = found["upper_by"] = found["upper_whp"] = nb::none();
    return found;
  }
  if (norm == "token") {
    const TokenNorm found = [&] {
      const nb::gil_scoped_release free;
      return token_norm(witness, tokens, {.seed = effort.seed});
    }();
    return answer(found);
  }
  Measurement found = [&] {
    const nb::gil_scoped_release free;
    if (f32)
      require_adjoint(in_f32, effort.seed);
    else
      require_adjoint(in_f64, effort.seed);
    MeasureOptions options = options_of(effort);
    options.from_above = options.from_above && !f32;
    return f32 ? measure_norm(in_f32, widened, options)
               : measure_norm(in_f64, options);
  }();
  if (f32) {  // a small operator is formed, with both sides
    found.upper.reset();
    found.upper_whp.reset();
  }
  return answer(found);
}

nb::dict two_precisions(const nb::tuple& search, const nb::tuple& witness,
                        Index rows, Index cols, const Effort& effort) {
  const auto [search_matvec, search_rmatvec] = functions_of(search);
  const auto [witness_matvec, witness_rmatvec] = functions_of(witness);
  const CallbackOperator<float> in_f32(search_matvec, search_rmatvec, rows,
                                       cols);
  const CallbackOperator<double> in_f64(witness_matvec, witness_rmatvec, rows,
                                        cols);
  const Measurement found = [&] {
    const nb::gil_scoped_release free;
    return measure_norm(in_f32, in_f64, options_of(effort));
  }();
  return answer(found);
}

}  // namespace

void bind_operators(nb::module_& m) {
  using namespace nb::literals;
  m.def(
      "array_norm",
      [](nb::handle array, const std::string& norm, Index tokens,
         double enclose, double tolerance, int max_steps, double delta,
         std::uint64_t seed, int threads) {
        return array_norm(
            array, norm, tokens,
            {enclose, tolerance, max_steps, delta, seed, threads});
      },
      "array"_a, nb::kw_only(), "norm"_a = "2", "tokens"_a = 0,
      "enclose"_a = 0.0, "tolerance"_a = 1e-5, "max_steps"_a = 300,
      "delta"_a = 1e-10, "seed"_a = 0, "threads"_a = 0,
      "The norm of an array with two axes, f32 or f64, which is not copied.");
  m.def(
      "callback_norm",
      [](const nb::tuple& functions, Index rows, Index cols, bool f32,
         const std::string& norm, Index tokens, double enclose,
         double tolerance, int max_steps, double delta, std::uint64_t seed,
         int threads, bool from_above) {
        return callback_norm(
            functions, rows, cols, f32, norm, tokens,
            {enclose, tolerance, max_steps, delta, seed, threads, from_above});
      },
      "functions"_a, "rows"_a, "cols"_a, nb::kw_only(), "f32"_a = false,
      "norm"_a = "2", "tokens"_a = 0, "enclose"_a = 0.0, "tolerance"_a = 1e-5,
      "max_steps"_a = 300, "delta"_a = 1e-10, "seed"_a = 0, "threads"_a = 0,
      "from_above"_a = true,
      "The norm of the operator with the functions (matvec, rmatvec).");
  m.def(
      "measure_operators",
      [](const nb::tuple& search, const nb::tuple& witness, Index rows,
         Index cols, double enclose, double tolerance, int max_steps,
         double delta, std::uint64_t seed, int threads, bool from_above,
         nb::handle likely) {
        return two_precisions(search, witness, rows, cols,
                              {enclose, tolerance, max_steps, delta, seed,
                               threads, from_above, likely_of(likely)});
      },
      "search"_a, "witness"_a, "rows"_a, "cols"_a, nb::kw_only(),
      "enclose"_a = 0.0, "tolerance"_a = 1e-5, "max_steps"_a = 300,
      "delta"_a = 1e-10, "seed"_a = 0, "threads"_a = 0, "from_above"_a = true,
      "likely"_a.none() = nb::none(),
      "The 2-norm of an operator that is given twice, each time as (matvec, "
      "rmatvec): searched for in f32, testified in f64. That rmatvec is the "
      "adjoint of matvec is not tested here. Where `likely` is an array the "
      "search starts near it.");
}

}  // namespace lipscope::python
