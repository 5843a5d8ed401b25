#include "lipscope/model/families/families.h"

namespace lipscope {

// RoBERTa, XLM-R and CamemBERT: BERT with positions that are counted from
// behind the padding token's number.
Family roberta_family() {
  Family f = bert_family();
  f.model_types = {"roberta", "xlm-roberta", "camembert"};
  f.prefixes = {"roberta."};
  f.usual.vocabulary = 50265;
  f.usual.padding = 1;
  f.usual.position_offset = 2;
  f.read = [](const ConfigReader& r, ModelConfig& c) {
    bert_family().read(r, c);
    if (const nlohmann::json* id = r.find("pad_token_id"))
      c.padding = *id == 0 ? 0 : r.count({"pad_token_id"}, 1, c.vocabulary - 1);
    c.position_offset = *c.padding + 1;
    c.positions -= c.position_offset;
  };
  return f;
}

}  // namespace lipscope
