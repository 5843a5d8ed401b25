#include "lipscope/model/language_model_config.h"

#include <stdexcept>

#include "lipscope/core/errors.h"
#include "lipscope/io/text_file.h"
#include "lipscope/model/config_reader.h"

namespace lipscope {
namespace {

// the one of `all` whose name stands under the key
template <class Enum, std::size_t n>
Enum named(const ConfigReader& r, const char* key, const Enum (&all)[n]) {
  const std::string name = r.needed_text(key);
  std::string expected;
  for (const Enum e : all) {
    if (name_of(e) == name) return e;
    expected += (expected.empty() ? "expected " : ", ") + name_of(e);
  }
  r.refuse(key, r.need(key), expected);
}

constexpr NormPlace norm_places[] = {NormPlace::post, NormPlace::pre,
                                     NormPlace::none};

}  // namespace

std::string name_of(Mixer mixer) {
  switch (mixer) {
    case Mixer::dot:
      return "dot";
    case Mixer::l2:
      return "l2";
    case Mixer::l2_untied:
      return "l2-untied";
    case Mixer::contractive_l2:
      return "contractive-l2";
    case Mixer::position:
      return "position";
    case Mixer::lstm:
      return "lstm";
  }
  throw std::invalid_argument("name_of: no such mixer");
}

bool compares(Mixer mixer) {
  return mixer != Mixer::position && mixer != Mixer::lstm;
}

Kind attention_kind(Mixer mixer) {
  switch (mixer) {
    case Mixer::dot:
      return Kind::dot;
    case Mixer::l2_untied:
      return Kind::l2_untied;
    case Mixer::l2:
    case Mixer::contractive_l2:
      return Kind::l2;
    case Mixer::position:
    case Mixer::lstm:
      break;
  }
  throw std::invalid_argument("attention_kind: no head compares characters");
}

std::string name_of(NormPlace place) {
  switch (place) {
    case NormPlace::post:
      return "post";
    case NormPlace::pre:
      return "pre";
    case NormPlace::none:
      return "none";
  }
  throw std::invalid_argument("name_of: no such place of a norm");
}

std::string name_of(Join join) {
  switch (join) {
    case Join::add:
      return "add";
    case Join::convex:
      return "convex";
    case Join::none:
      return "none";
  }
  throw std::invalid_argument("name_of: no such join");
}

std::string name_of(Division division) {
  switch (division) {
    case Division::layer:
      return "layer";
    case Division::coordinate:
      return "coordinate";
  }
  throw std::invalid_argument("name_of: no such division");
}

std::string name_of(Positions positions) {
  switch (positions) {
    case Positions::table:
      return "table";
    case Positions::rotary:
      return "rotary";
    case Positions::relative:
      return "relative";
    case Positions::none:
      return "none";
  }
  throw std::invalid_argument("name_of: no such positions");
}

void require_sound(const LanguageModelConfig& c) {
  require(c.characters >= 2, "language model: {} characters in its vocabulary",
          c.characters);
  require(c.layers >= 1, "language model: {} layers", c.layers);
  require(c.context >= 1, "language model: a context of {}", c.context);
  require(c.width >= 1 && c.heads >= 1 && c.hidden >= 1,
          "language model: width {}, {} heads, {} hidden", c.width, c.heads,
          c.hidden);
  require(c.mixer == Mixer::lstm || c.width % c.heads == 0,
          "language model: width {} does not divide into {} heads", c.width,
          c.heads);
  if (c.mixer == Mixer::lstm) return;
  require(
      c.position_heads >= 0 && c.position_heads <= c.heads &&
          (c.position_heads == c.heads) == !compares(c.mixer),
      "language model: {} of {} heads look by position; with {} it must be {}",
      c.position_heads, c.heads, name_of(c.mixer),
      compares(c.mixer) ? "fewer than all" : "all");
  require(c.position_heads == 0 || c.heads_apart,
          "language model: {} position heads, which write into coordinates of "
          "their own, beside heads that share them",
          c.position_heads);
  require(c.join != Join::convex || (c.join_share > 0.0 && c.join_share < 1.0),
          "language model: a share of {} is not between 0 and 1", c.join_share);
  require(c.activation != Activation::max_min || c.hidden % 2 == 0,
          "language model: max-min takes pairs, of {} hidden features",
          c.hidden);
  require(c.positions != Positions::rotary ||
              (c.mixer == Mixer::dot && c.width / c.heads % 2 == 0),
          "language model: rotary positions of {} heads of width {}; they are "
          "those of dot-product heads of even width",
          name_of(c.mixer), c.width / c.heads);
  require(c.division == Division::layer || c.mixer == Mixer::contractive_l2,
          "language model: {} is not divided by its bound, by coordinate or "
          "otherwise",
          name_of(c.mixer));
  require(c.positions != Positions::relative ||
              (compares(c.mixer) && (c.mixer != Mixer::contractive_l2 ||
                                     c.division == Division::coordinate)),
          "language model: relative positions of {}; they are those of dot, "
          "l2, l2-untied and contractive-l2 heads{}",
          name_of(c.mixer),
          c.mixer == Mixer::contractive_l2
              ? ", the last divided by coordinate (the bound of the layer does "
                "not hold with them)"
              : "");
  require(c.join == Join::add || c.norm == NormPlace::none,
          "language model: residual {} with norm {}; with norms it is add",
          name_of(c.join), name_of(c.norm));
  require(c.mixer != Mixer::contractive_l2 || !c.heads_apart,
          "language model: {} with heads apart; what it is divided by is made "
          "of the output matrix, which these do not have",
          name_of(c.mixer));
  require(!c.quiet_gain ||
              (*c.quiet_gain > 0.0 && c.mixer == Mixer::contractive_l2 &&
               c.positions == Positions::relative &&
               c.norm != NormPlace::none && c.width >= 2),
          "language model: a quiet start with a gain of {}, of {} with {} "
          "positions and norm {}; it is that of contractive-l2 with relative "
          "positions and norms",
          c.quiet_gain.value_or(0.0), name_of(c.mixer), name_of(c.positions),
          name_of(c.norm));
  if (!c.contraction) return;
  require(*c.contraction > 0.0 && *c.contraction < 1.0,
          "language model: a contraction of {} is not between 0 and 1",
          *c.contraction);
  require(c.mixer == Mixer::contractive_l2 && c.norm == NormPlace::none,
          "language model: with a contraction it is contractive-l2 without "
          "norms, not {} with norm {}",
          name_of(c.mixer), name_of(c.norm));
}

LanguageModelConfig parse_language_model_config(std::string_view text,
                                                const std::string& where) {
  const ConfigReader r(text, where);
  if (r.needed_text("model_type") != "lipscope")
    r.refuse("model_type", r.need("model_type"),
             "expected lipscope: a model that lipscope trained");
  LanguageModelConfig c;
  c.mixer = named(r, "mixer", all_mixers);
  c.layers = r.needed_count("num_layers", most_layers);
  c.width = r.needed_count("width", most_wide);
  c.context = r.needed_count("context", most_wide);
  if (c.mixer != Mixer::lstm) {
    c.heads = r.needed_count("num_heads", most_wide);
    c.hidden = r.needed_count("mlp_width", most_wide);
    r.need("activation");
    c.activation = r.activation({"activation"}, Activation::gelu);
    c.norm = named(r, "norm", norm_places);
    // folders from before these were there do not have them
    if (r.find("position_heads") != nullptr) {
      c.position_heads = r.count({"position_heads"}, 0, most_wide, 0);
      c.heads_apart = r.flag({"heads_apart"}, false);
      c.positions = named(r, "positions", all_positions);
      c.join = named(r, "residual", all_joins);
      if (c.join == Join::convex)
        c.join_share = r.positive({"residual_share"}, 1.0);
    }
    c.head_bias = r.flag({"head_bias"}, false);
    if (r.find("division") != nullptr)
      c.division = named(r, "division", all_divisions);
    if (r.find("contraction") != nullptr)
      c.contraction = r.positive({"contraction"}, 1.0);
  }
  const nlohmann::json& characters = r.need("characters");
  if (!characters.is_array())
    r.refuse("characters", characters, "expected a list of code points");
  c.characters = static_cast<Index>(characters.size());
  try {
    require_sound(c);
  } catch (const std::invalid_argument& wrong) {
    throw InputError(fmt::format("{}: {}", where, wrong.what()));
  }
  return c;
}

std::optional<LanguageModelConfig> read_language_model_config(
    const std::filesystem::path& path) {
  const std::string text = read_text_file(path, largest_config);
  if (ConfigReader(text, path.string()).needed_text("model_type") != "lipscope")
    return std::nullopt;
  return parse_language_model_config(text, path.string());
}

}  // namespace lipscope
