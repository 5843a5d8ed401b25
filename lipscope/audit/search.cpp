#include "lipscope/audit/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>

#include "lipscope/attention/kinds.h"
#include "lipscope/audit/maps.h"
#include "lipscope/audit/new_record.h"
#include "lipscope/audit/subject.h"
#include "lipscope/audit/token_bounds.h"
#include "lipscope/audit/token_memory.h"
#include "lipscope/core/errors.h"
#include "lipscope/io/npy.h"
#include "lipscope/record/evidence.h"

namespace lipscope::audit {
namespace {

using nlohmann::ordered_json;

// where the tokens of a layer are, for those who search and for those who bound
struct Tokens {
  Region region;
  TokenSet set;
};

Tokens tokens_for(const SearchRequest& o, const Subject& subject,
                  const Selection& selection, std::optional<Index> layer) {
  const std::optional<Radius>& radius = o.source.radius;
  const bool ahead = !radius && subject.model;
  if (!ahead && (!radius || radius->is_everywhere())) {
    if (!lipschitz_everywhere(selection, layer))
      throw InputError(fmt::format(
          "kind {} is not Lipschitz everywhere{}, give --radius",
          name_of(selection.kind),
          kind_of(selection.kind).lipschitz ? " with padding" : ""));
    return {everywhere(), {}};
  }
  const TokenSet set = ahead ? tokens_ahead(subject, selection, layer)
                             : tokens_within(*radius, subject, layer);
  if (set.radius == 0.0) return {everywhere(), {}};
  return {set.norm ? after_norm(*set.norm) : ball(set.radius), set};
}

class Searching final {
 public:
  Searching(SearchRequest request, const Watch& watch)
      : o_(std::move(request)),
        subject_(load_subject(o_.source, watch)),
        selection_(select(o_.selection, o_.source, subject_)),
        lengths_(lengths_of(o_.source)),
        maps_(subject_, selection_, o_.threads, 0),
        watch_(watch) {
    if (selection_.map != MapName::core && selection_.map != MapName::attn)
      throw InputError(fmt::format("--map {}: search climbs attn or core alone",
                                   name_of(selection_.map)));
    if (subject_.model && subject_.model->config.position_heads > 0)
      throw InputError(fmt::format(
          "{}: has position heads; search climbs attention whose heads all "
          "compare tokens",
          subject_.name));
    if (total() > 1 && saves())
      throw InputError(fmt::format(
          "--save-direction and --save-input take one search; these are {}",
          total()));
    require_sound_masks(selection_.masks, lengths_);
    require_token_memory(lengths_, 1, subject_, selection_);
    for (const Index n : lengths_)
      require_weight_memory(n, subject_, selection_, 0);
    o_.search.norm = selection_.norm;
    o_.search.seed = o_.source.seed;
    // all radii, before hours are spent on the first
    for (const std::optional<Index>& layer : selection_.layers)
      tokens_.push_back(tokens_for(o_, subject_, selection_, layer));
  }

  Plan plan(const std::vector<std::string>& arguments) const {
    Plan plan("search", arguments);
    for_each([&](const Record& asked, const Tokens&) { plan.add(asked); });
    return plan;
  }

  Outcome run(Records& records) {
    records_ = &records;
    records_->open();
    taken_ = records_->count_of(total());
    progress_.emplace(watch_, taken_);
    say_budget();
    Index found = 0;
    for_each_taken([&](const Record& asked, const Tokens&) {
      found += records_->find(asked) != nullptr;
    });
    records_->count(found, taken_ - found);
    for_each_taken([&](const Record& asked, const Tokens& tokens) {
      search_one(asked, tokens);
      ++done_;
    });
    return {.converged = all_converged_};
  }

 private:
  Index total() const {
    return static_cast<Index>(selection_.layers.size() *
                              selection_.heads.size() * lengths_.size());
  }

  template <class Do>
  void for_each(const Do& act) const {
    for (std::size_t l = 0; l < selection_.layers.size(); ++l)
      for (const std::optional<Index>& head : selection_.heads)
        for (const Index n : lengths_)
          act(asked_of(selection_.layers[l], head, n, tokens_[l]), tokens_[l]);
  }

  // of those, the ones that are this run's
  template <class Do>
  void for_each_taken(const Do& act) const {
    Index number = 0;
    for_each([&](const Record& asked, const Tokens& tokens) {
      const Index own = number++;
      if (!records_->takes(own)) return;
      records_->check(own, asked);
      act(asked, tokens);
    });
  }

  // before an hour passes, or what is found is taken for all there is
  void say_budget() const {
    const std::string maps =
        taken_ == 1 ? "one map" : fmt::format("{} maps", taken_);
    progress_->note(
        o_.search.budget == 0.0
            ? fmt::format("searching {}, without a limit of time", maps)
            : fmt::format("searching {}, {:g} s in all (--budget)", maps,
                          o_.search.budget));
  }

  double elapsed() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

  // what is left, in equal shares; never 0, which would be no limit
  double share_of_budget() const {
    if (o_.search.budget == 0.0) return 0.0;
    const double left = o_.search.budget - elapsed();
    return std::max(1e-3, left / static_cast<double>(taken_ - done_));
  }

  Record asked_of(std::optional<Index> layer, std::optional<Index> head,
                  Index n, const Tokens& tokens) const {
    Record r = new_record("search", subject_, selection_, o_.source.seed);
    r.layer = layer;
    r.head = head;
    r.n = n;
    set_mask(selection_, r);
    const bool bounded = tokens.region.bounded();
    if (bounded) r.radius_max = tokens.set.radius;
    r.scope = tokens.set.norm ? Scope::norm_layer
              : bounded       ? Scope::ball
                              : Scope::everywhere;
    r.dtype = NumberFormat::f64;
    r.parameters.update({{"restarts", o_.search.restarts},
                         {"max_evaluations", o_.search.max_evaluations},
                         {"of", "best"}});
    if (o_.source.radius) r.parameters["radius"] = to_json(*o_.source.radius);
    return r;
  }

  bool saves() const { return !(o_.save_direction + o_.save_input).empty(); }

  // the records of the starts that led higher, and then of the best
  void search_one(const Record& asked, const Tokens& tokens) {
    const std::optional<Index> layer = asked.layer, head = asked.head;
    const Index n = asked.n;
    if (const ordered_json* found = records_->find(asked);
        found && !saves() && !o_.witness) {
      keep_starts(asked, *found);
      records_->keep(asked);
      all_converged_ = all_converged_ && (*found)["status"] == "converged";
      return;
    }
    const std::string doing = fmt::format("n = {}", n) +
                              (layer ? fmt::format(", layer {}", *layer) : "") +
                              (head ? fmt::format(", head {}", *head) : "");
    progress_->show(done_, doing);
    const std::optional<Bound> above =
        best_bound_of(maps_, selection_, layer, head, n, tokens.set);

    const double before = elapsed();
    SearchOptions options = o_.search;
    options.n = n;
    options.budget = share_of_budget();
    options.keep_going = [&](const SearchProgress& p) {
      progress_->show(done_, fmt::format("{}, start {}/{}, {:.6g}", doing,
                                         std::min(p.start + 1, p.starts),
                                         p.starts, p.best));
      return true;
    };
    options.improved = [&](const Found& found) {
      Record r = asked;
      r.parameters["of"] = "start " + found.start;
      answer(r, found, above, tokens.region.scope());
      if (found.cut) r.cut = "budget";
      r.seconds = elapsed() - before;
      records_->add(r);
    };
    const LayerWeights& weights = maps_.weights(layer);
    ModelMapOptions map = map_options(selection_, head);
    map.threads = o_.threads;
    const ChosenAttention chosen =
        chosen_attention(weights, selection_.map == MapName::attn, map);
    const SearchResult result = lipscope::search(chosen.weights, chosen.options,
                                                 tokens.region, options);

    Record r = asked;
    answer(r, result.best, above, tokens.region.scope());
    r.steps = result.evaluations;
    // a search that was cut has not looked everywhere it was to look
    r.converged = result.complete && result.best.converged && !result.cut;
    if (result.cut) r.cut = "budget";
    r.seconds = elapsed() - before;
    r.details["starts"] = ordered_json::array();
    for (const Found& f : result.all)
      r.details["starts"].push_back(
          {{"start", f.start},
           {"before", f.before},
           {"value", f.value},
           {"evaluations", f.evaluations},
           {"status", f.converged ? "converged" : "not-converged"}});
    r.details["reached"] = result.reached;
    r.details["independent_starts"] = result.independent;
    r.details["starts_left"] =
        result.starts - static_cast<Index>(result.all.size());
    r.details["starts_cut"] =
        std::count_if(result.all.begin(), result.all.end(),
                      [](const Found& f) { return f.cut; });
    all_converged_ = all_converged_ && r.converged && r.cut.empty();
    save(result.best);
    records_->add(r);
    const Found& best = result.best;
    if (o_.witness)
      o_.witness(
          {.row = records_->rows().size() - 1,
           .direction = unflatten(best.direction, best.x.rows(), best.x.cols()),
           .input = best.x});
  }

  // the same rows as when the search was made: those of the starts that led
  // higher than the ones before them
  void keep_starts(const Record& asked, const ordered_json& best) {
    const auto path = ordered_json::json_pointer("/details/starts");
    if (!best.contains(path)) return;
    for (const ordered_json& start : best.at(path)) {
      Record r = asked;
      r.parameters["of"] = "start " + start.value("start", "");
      records_->keep(r);
    }
  }

  // what was found, and what is proved above it
  void answer(Record& r, const Found& found, const std::optional<Bound>& above,
              const std::string& region) const {
    r.lower = found.value;
    r.lower_by = KnownBy(found.value_by)
                     .at(found.start + (found.climbed ? " + ascent" : ""));
    if (selection_.norm == Norm::two) r.residual = found.residual;
    r.steps = found.evaluations;
    r.converged = found.converged;
    const Vector lengths = found.x.rowwise().norm();
    r.details = {{"region", region},
                 {"start", found.start},
                 {"before", found.before},
                 {"input_radius", lengths.maxCoeff()}};
    if (!above) return;
    set_upper(r, *above);
    r.details["upper_scope"] = name_of(above->scope);
    if (r.upper && found.value > 0.0)
      r.details["ratio"] = *r.upper / found.value;
  }

  // what was asked for beside the record is there when the record is
  void save(const Found& best) const {
    if (!o_.save_input.empty()) write_npy(o_.save_input, best.x);
    if (!o_.save_direction.empty())
      write_npy(o_.save_direction,
                unflatten(best.direction, best.x.rows(), best.x.cols()));
  }

  SearchRequest o_;
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Subject subject_;
  Selection selection_;
  std::vector<Index> lengths_;
  std::vector<Tokens> tokens_;  // of each selected layer
  Maps maps_;
  Watch watch_;
  Records* records_ = nullptr;
  std::optional<Progress> progress_;
  Index taken_ = 0;  // maps of this run
  Index done_ = 0;
  bool all_converged_ = true;
};

}  // namespace

Outcome search(const SearchRequest& request, Records& records,
               const Watch& watch) {
  return Searching(request, watch).run(records);
}

Plan plan(const SearchRequest& request,
          const std::vector<std::string>& arguments, const Watch& watch) {
  return Searching(request, watch).plan(arguments);
}

}  // namespace lipscope::audit
