#include "lipscope/attention/kinds.h"
#include "lipscope/experiments/experiment.h"

namespace lipscope {

Record attention_question(const std::string& model) {
  Record r;
  r.command = "reproduce";
  r.model = model;
  r.map = "attn";
  r.kind = name_of(Kind::dot);
  r.mask = name_of(Mask::none);
  r.norm = Norm::two;
  r.scope = Scope::input;
  r.dtype = NumberFormat::f64;
  return r;
}

const std::vector<Experiment>& experiments() {
  static const std::vector<Experiment> all = {
      {"kim-tightness",
       "L2 attention nearly attains its bound in the inf-norm, up to 1001 "
       "tokens [Kim21]",
       false, false, false, false, kim_tightness},
      {"kim-inversion",
       "residual L2 attention is inverted by fixed point, dot-product "
       "attention on wide inputs is not [Kim21]",
       false, false, false, false, kim_inversion},
      {"kim-charlm",
       "models of characters learn a text: LSTM, dot-product, L2 and "
       "Contractive-L2 attention against depth [Kim21]",
       false, true, true, false, kim_charlm},
      {"kim-stability",
       "at a fixed learning rate without warm-up deep dot-product models do "
       "not learn, L2 models do [Kim21]",
       false, true, true, false, kim_stability},
      {"dot-product-unbounded",
       "at X = (0, t, -t) dot-product attention reacts like t^2, L2 attention "
       "does not [Kim21]",
       false, false, false, false, dot_product_unbounded},
      {"castin-adversarial",
       "the constant grows like the root of the length, then no more; masked "
       "and unmasked [Castin24]",
       true, false, false, false, castin_adversarial},
      {"castin-real",
       "trained and untrained models over a text: the constant against the "
       "length, with fits [Castin24]",
       true, true, false, false, castin_real},
      {"castin-meanfield",
       "two atoms of unequal masses against the bounds over measures, as the "
       "radius grows [Castin24]",
       false, false, false, false, castin_meanfield},
      {"large-radius",
       "scaled up, an input ends at a constant that counts tokens, after "
       "transients [Castin24]",
       false, false, false, false, large_radius},
      {"layer-norm",
       "the same heads with a norm layer ahead stay bounded where without it "
       "they grow [Castin24]",
       true, false, false, false, layer_norm_experiment},
      {"mass-splitting",
       "tokens that may be cut react more than tokens that move whole "
       "[Castin23]",
       false, false, false, false, mass_splitting},
      {"newhouse-shakespeare",
       "loss against the proved constant: models with a promise, the "
       "architecture of Newhouse25, and counted n-grams [Newhouse25]",
       false, true, true, true, newhouse_shakespeare},
      {"robustness-histogram",
       "how many predictions of trained models are proved to hold against the "
       "size of a change, and how many an attack changes",
       false, true, true, false, robustness_histogram},
  };
  return all;
}

}  // namespace lipscope
