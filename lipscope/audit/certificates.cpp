#include "lipscope/audit/certificates.h"

#include <algorithm>
#include <cmath>

#include "lipscope/core/errors.h"
#include "lipscope/core/parallel.h"
#include "lipscope/record/evidence.h"
#include "lipscope/theory/bounds.h"
#include "lipscope/theory/model_certificates.h"

namespace lipscope::audit {
namespace {

std::optional<Certificate> named(const std::string& which) {
  if (which == "split") return Certificate::split_paths;
  if (which == "pairs") return Certificate::token_pairs;
  if (which == "covariances") return Certificate::covariances;
  if (which == "tight") return Certificate::leading_apart;
  if (which == "exact") return Certificate::exact_norm;
  return std::nullopt;
}

// Whether something is proved in the selected norm: in the 2-norm for all maps,
// in the token norm for attention alone.
bool speaks_of_norm(const Selection& s) {
  const bool attention = s.map == MapName::attn || s.map == MapName::core;
  return s.norm == Norm::two || (s.norm == Norm::token && attention);
}

}  // namespace

Certificates::Certificates(const Subject& subject, const Selection& selection,
                           Maps& maps, const std::string& which, int threads)
    : subject_(subject),
      selection_(selection),
      maps_(maps),
      which_(which),
      threads_(threads) {
  if (which == "auto" || which == "none" || which == "all") return;
  if (!named(which))
    throw InputError(fmt::format(
        "--certificate {}: expected auto, none, split, pairs, covariances, "
        "tight, exact or all",
        which));
  if (selection.norm != Norm::two)
    throw InputError(fmt::format(
        "--certificate {}: there is none in the norm {}; it is for the 2-norm",
        which, name_of(selection.norm)));
  const ModelConfig* c = subject.model ? &subject.model->config : nullptr;
  const bool around =
      selection.map != MapName::core && selection.map != MapName::attn;
  if (c && (c->position_heads > 0 || (around && c->carry != 1.0)))
    throw InputError(fmt::format(
        "--certificate {}: there is none for {}, which has position heads, or "
        "layers that are not x + f(x)",
        which, subject.name));
  const bool sloped =
      c && (c->rope || c->query_key_norm != QueryKeyNormForm::none);
  if (which == "covariances" && (selection.kind != Kind::dot || sloped))
    throw InputError(fmt::format(
        "--certificate {}: there is none for kind {}{}; it is for dot-product "
        "attention without rotary positions and q/k-norm (split, pairs, "
        "tight and exact are for all)",
        which, selection.kind_name,
        sloped ? " with " + c->score_features() : ""));
}

bool Certificates::whole_model(const Part& part) const {
  return subject_.model && !part.layer;
}

bool Certificates::large() const {
  return which_ == "tight" || which_ == "exact" || which_ == "all";
}

void Certificates::prepare(const Part& part, Index n) {
  if (which_ == "none" || !speaks_of_norm(selection_) || whole_model(part))
    return;
  maps_.prepare_certificates(part);
  const std::optional<Certificate> which = named(which_);
  if (!which) return;
  if (const auto much = maps_.certificates(part).too_large(*which, n))
    throw InputError(
        fmt::format("--certificate {}: it needs {}", which_, *much));
}

Certificates::Found Certificates::found_at(const LayerCertificates& made,
                                           const Matrix& x) const {
  if (selection_.norm != Norm::two) {
    const std::optional<Bound> bound = made.over_ball(x, selection_.norm);
    return bound ? Found{*bound} : Found{};
  }
  std::vector<std::optional<Certificate>> asked = {
      named(which_) ? named(which_) : made.usual(x.rows())};
  if (which_ == "all")
    asked.assign(std::begin(all_certificates), std::end(all_certificates));
  Found found;
  for (const std::optional<Certificate>& one : asked) {
    if (one && (!made.offers(*one) || made.too_large(*one, x.rows()))) continue;
    if (std::optional<Bound> bound = made.at(x, one))
      found.push_back(std::move(*bound));
  }
  return found;
}

std::vector<Certificates::Found> Certificates::of_layer(const Part& part,
                                                        const Matrix& x,
                                                        Index count) const {
  const LayerCertificates& made = maps_.certificates(part);
  const Index n = x.rows() / count;
  std::vector<Found> found(count);
  parallel_for(count, large() ? 1 : threads_, [&](Index i) {
    found[i] = found_at(made, x.middleRows(i * n, n));
  });
  return found;
}

std::vector<Certificates::Found> Certificates::of_model(const Matrix& x,
                                                        Index count) const {
  ModelMapOptions options = map_options(selection_, {});
  options.threads = threads_;
  const std::vector<std::optional<ModelBound>> made =
      model_certificates(*subject_.model, options, named(which_), x, count);
  std::vector<Found> found(count);
  for (Index i = 0; i < count; ++i)
    if (made[i]) found[i].push_back(made[i]->bound);
  return found;
}

bool Certificates::wanted(const std::vector<Record>& records) const {
  if (which_ == "none" || !speaks_of_norm(selection_)) return false;
  const bool answered =
      std::all_of(records.begin(), records.end(),
                  [](const Record& r) { return r.upper.has_value(); });
  return which_ != "auto" || !answered;
}

bool Certificates::add(std::vector<Record>& records, const Matrix& x,
                       const Part& part) const {
  if (!wanted(records)) return false;
  const Index count = static_cast<Index>(records.size());
  const std::vector<Found> found =
      whole_model(part) ? of_model(x, count) : of_layer(part, x, count);
  for (Index i = 0; i < count; ++i) {
    Record& r = records[i];
    for (const Bound& bound : found[i]) {
      const bool finite = std::isfinite(bound.value);
      if (which_ != "auto")
        r.details["certificates"][bound.name] =
            finite ? nlohmann::ordered_json(bound.value)
                   : nlohmann::ordered_json(nullptr);
      lower_upper(r, bound);
    }
  }
  return true;
}

}  // namespace lipscope::audit
