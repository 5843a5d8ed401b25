#include "lipscope/model/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "lipscope/core/errors.h"
#include "lipscope/model/family.h"
#include "tests/model/folders.h"

namespace lipscope {
namespace config_test {

using nlohmann::json;
using test::message_of;
using test::says;

ModelConfig parse(const json& j) {
  return parse_model_config(j.dump(), "c.json");
}

std::string refusal(const json& j) {
  return message_of<InputError>([&] { parse(j); });
}

TEST(ModelConfig, HasTheDefaultsOfTransformersWhereNothingIsSaid) {
  const ModelConfig gpt2 = parse({{"model_type", "gpt2"}});
  EXPECT_EQ(gpt2.layers, 12);
  EXPECT_EQ(gpt2.width, 768);
  EXPECT_EQ(gpt2.heads, 12);
  EXPECT_EQ(gpt2.head_width, 64);
  EXPECT_EQ(gpt2.mlp_width, 3072);
  EXPECT_EQ(gpt2.vocabulary, 50257);
  EXPECT_EQ(gpt2.positions, 1024);
  EXPECT_EQ(gpt2.epsilon, 1e-5);
  EXPECT_EQ(gpt2.activation, Activation::gelu_tanh);
  EXPECT_TRUE(gpt2.tied_embeddings);
  EXPECT_EQ(gpt2.mask(0), Mask::causal);
  EXPECT_TRUE(gpt2.pre_norm());

  const ModelConfig bert = parse({{"model_type", "bert"}});
  EXPECT_EQ(bert.vocabulary, 30522);
  EXPECT_EQ(bert.positions, 512);
  EXPECT_EQ(bert.token_types, 2);
  EXPECT_EQ(bert.epsilon, 1e-12);
  EXPECT_EQ(bert.activation, Activation::gelu);
  EXPECT_EQ(bert.mask(0), Mask::none);
  EXPECT_FALSE(bert.pre_norm());

  const ModelConfig llama = parse({{"model_type", "llama"}});
  EXPECT_EQ(llama.layers, 32);
  EXPECT_EQ(llama.width, 4096);
  EXPECT_EQ(llama.key_heads, 32);
  EXPECT_EQ(llama.head_width, 128);
  EXPECT_EQ(llama.mlp_width, 11008);
  EXPECT_EQ(llama.vocabulary, 32000);
  EXPECT_EQ(llama.positions, 2048);
  EXPECT_EQ(llama.epsilon, 1e-6);
  EXPECT_TRUE(llama.rope == Rotary());
  EXPECT_EQ(llama.activation, Activation::silu);
  EXPECT_FALSE(llama.tied_embeddings);
  EXPECT_FALSE(llama.attention_bias);
}

TEST(ModelConfig, ReadsWhatIsSaid) {
  for (const Architecture a :
       {Architecture::gpt2, Architecture::bert, Architecture::llama}) {
    const ModelConfig c = test::small_config(a);
    const ModelConfig read = parse_model_config(test::config_json(c), "c.json");
    EXPECT_EQ(read.architecture, c.architecture);
    EXPECT_EQ(read.layers, c.layers);
    EXPECT_EQ(read.width, c.width);
    EXPECT_EQ(read.heads, c.heads);
    EXPECT_EQ(read.key_heads, c.key_heads);
    EXPECT_EQ(read.head_width, c.head_width);
    EXPECT_EQ(read.mlp_width, c.mlp_width);
    EXPECT_EQ(read.vocabulary, c.vocabulary);
    EXPECT_EQ(read.positions, c.positions);
    EXPECT_EQ(read.epsilon, c.epsilon);
    EXPECT_EQ(read.activation, c.activation);
    EXPECT_TRUE(read.rope == c.rope);
    EXPECT_EQ(read.tied_embeddings, c.tied_embeddings);
    EXPECT_EQ(read.attention_bias, c.attention_bias);
  }
  // derived: the MLP of GPT-2, the heads of Llama; null is nothing
  EXPECT_EQ(parse({{"model_type", "gpt2"},
                   {"n_embd", 48},
                   {"n_head", 3},
                   {"n_inner", nullptr}})
                .mlp_width,
            192);
  const ModelConfig llama = parse({{"model_type", "llama"},
                                   {"hidden_size", 64},
                                   {"num_attention_heads", 8},
                                   {"head_dim", nullptr},
                                   {"rope_scaling", nullptr},
                                   {"sliding_window", nullptr}});
  EXPECT_EQ(llama.head_width, 8);
  EXPECT_EQ(llama.key_heads, 8);
  // newer files keep theta in rope_parameters
  EXPECT_EQ(parse({{"model_type", "llama"},
                   {"rope_parameters",
                    {{"rope_type", "default"}, {"rope_theta", 5e5}}}})
                .rope->theta,
            5e5);
  EXPECT_EQ(parse({{"model_type", "bert"}, {"hidden_act", "relu"}}).activation,
            Activation::relu);
}

TEST(ModelConfig, RefusesByNameWhatIsNotDone) {
  const json yarn{{"rope_type", "yarn"}, {"factor", 8.0}};
  const std::vector<std::pair<json, std::string>> cases = {
      {{{"model_type", "gemma2"}}, "gemma2"},
      {{{"model_type", "t5"}}, "t5"},
      {{{"architectures", {"GPT2LMHeadModel"}}}, "model_type"},
      {{{"model_type", "llama"}, {"rope_scaling", yarn}}, "yarn"},
      {{{"model_type", "llama"}, {"rope_scaling", {{"rope_type", "linear"}}}},
       "factor"},
      {{{"model_type", "llama"},
        {"rope_scaling",
         {{"rope_type", "linear"}, {"factor", 2.0}, {"beta_fast", 1}}}},
       "beta_fast"},
      {{{"model_type", "llama"},
        {"rope_scaling", {{"rope_type", "llama3"}, {"factor", 2.0}}}},
       "low_freq_factor"},
      {{{"model_type", "llama"}, {"rope_parameters", yarn}}, "rope_parameters"},
      {{{"model_type", "llama"},
        {"rope_scaling", {{"rope_type", "default"}}},
        {"rope_parameters", yarn}},
       "rope_parameters"},
      {{{"model_type", "llama"}, {"partial_rotary_factor", 0.5}}, "partial"},
      {{{"model_type", "gpt_neox"}, {"rotary_pct", 1.5}}, "rotary_pct"},
      {{{"model_type", "mistral"}, {"sliding_window", 0}}, "sliding_window"},
      {{{"model_type", "phi"}, {"qk_layernorm", true}}, "q/k-norm"},
      {{{"model_type", "olmo"}, {"clip_qkv", 8.0}}, "clip_qkv"},
      {{{"model_type", "opt"}, {"word_embed_proj_dim", 512}},
       "word_embed_proj_dim"},
      {{{"model_type", "albert"}, {"inner_group_num", 2}}, "inner_group_num"},
      {{{"model_type", "mpnet"}, {"relative_attention_num_buckets", 16}},
       "relative_attention_num_buckets"},
      {{{"model_type", "gemma3_text"}, {"attn_logit_softcapping", 50.0}},
       "attn_logit_softcapping"},
      {{{"model_type", "gemma3_text"}, {"use_bidirectional_attention", true}},
       "use_bidirectional_attention"},
      {{{"model_type", "gptj"}, {"rotary_dim", nullptr}}, "rotary_dim"},
      {{{"model_type", "gptj"}, {"rotary_dim", 3}}, "odd"},
      {{{"model_type", "gptj"}, {"tie_word_embeddings", true}},
       "tie_word_embeddings"},
      {{{"model_type", "smollm3"}, {"no_rope_layers", {1, 0}}},
       "no_rope_layers"},
      {{{"model_type", "gpt2"}, {"sliding_window", 4096}}, "sliding"},
      {{{"model_type", "gemma3_text"}, {"sliding_window", nullptr}},
       "sliding_window"},
      {{{"model_type", "mistral"}, {"layer_types", {"sliding_attention"}}},
       "layer_types"},
      {{{"model_type", "qwen2"},
        {"num_hidden_layers", 2},
        {"layer_types", {"full_attention", "sliding_attention"}}},
       "no window"},
      {{{"model_type", "qwen3"},
        {"num_hidden_layers", 3},
        {"use_sliding_window", true},
        {"layer_types", {"full_attention", "sliding_attention"}}},
       "one for each layer"},
      {{{"model_type", "qwen2"}, {"max_window_layers", -1}},
       "max_window_layers"},
      {{{"model_type", "modernbert"}, {"local_attention", 0}},
       "local_attention"},
      {{{"model_type", "modernbert"}, {"local_rope_theta", nullptr}},
       "local_rope_theta"},
      {{{"model_type", "modernbert"},
        {"rope_scaling", {{"rope_type", "linear"}, {"factor", 2.0}}}},
       "rope_scaling"},
      {{{"model_type", "llama"}, {"num_local_experts", 8}}, "experts"},
      {{{"model_type", "llama"},
        {"layer_types", {"full_attention", "sliding_attention"}}},
       "layer_types"},
      {{{"model_type", "mistral"}, {"layer_types", {"chunked_attention"}}},
       "layer_types"},
      {{{"model_type", "llama"}, {"quantization_config", {{"bits", 4}}}},
       "quantisation"},
      {{{"model_type", "gpt2"}, {"add_cross_attention", true}}, "cross"},
      {{{"model_type", "gpt2"}, {"scale_attn_weights", false}}, "sqrt"},
      {{{"model_type", "gpt2"}, {"scale_attn_by_inverse_layer_idx", true}},
       "layer"},
      {{{"model_type", "gpt2"}, {"activation_function", "mish"}}, "mish"},
      {{{"model_type", "bert"}, {"pruned_heads", {{"0", {1, 2}}}}}, "pruned"},
      {{{"model_type", "bert"}, {"position_embedding_type", "relative_key"}},
       "relative_key"}};
  for (const auto& [config, word] : cases)
    EXPECT_TRUE(says(refusal(config), {"c.json", word})) << config;
  // switched off, they are nothing
  EXPECT_NO_THROW(parse({{"model_type", "gpt2"},
                         {"add_cross_attention", false},
                         {"pruned_heads", json::object()},
                         {"is_encoder_decoder", false}}));
}

// the window of each layer; 0 where it has none
std::vector<Index> windows(const json& j) {
  const ModelConfig c = parse(j);
  std::vector<Index> found;
  for (Index l = 0; l < c.layers; ++l)
    found.push_back(c.mask(l).window.value_or(0));
  return found;
}

TEST(ModelConfig, SaysWhyWellKnownModelsAreLeftOut) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"gemma2", "attn_logit_softcapping"},
      {"gemma3", "gemma3_text"},
      {"deberta-v2", "pos_att_type"},
      {"bloom", "ALiBi"},
      {"falcon", "multi_query"},
      {"t5", "is_encoder_decoder"},
      {"whisper", "cross-attention"},
      {"mixtral", "mixture of experts (num_experts, num_local_experts"},
      {"mamba", "no attention"},
      {"swin", "window_size"}};
  for (const auto& [type, why] : cases) {
    const std::string said = refusal({{"model_type", type}});
    EXPECT_TRUE(says(
        said, {"c.json: model_type is \"" + std::string(type) + "\": ", why,
               "gpt2, bert, llama", "can be read"}))
        << said;
    EXPECT_FALSE(architecture_named(type)) << type;
  }
  EXPECT_TRUE(says(refusal({{"model_type", "nonsense"}}),
                   {"model_type is \"nonsense\"; gpt2, bert"}));
}

TEST(ModelConfig, HasItsWindowInTheLayersOfTransformers) {
  const auto of = [](const char* type, json more) {
    more["model_type"] = type;
    more["num_hidden_layers"] = 4;
    return windows(more);
  };
  using Windows = std::vector<Index>;
  EXPECT_EQ(of("mistral", {{"sliding_window", 7}}), (Windows{7, 7, 7, 7}));
  EXPECT_EQ(of("mistral", {{"sliding_window", nullptr}}),
            (Windows{0, 0, 0, 0}));
  EXPECT_EQ(of("phi3", json::object()), (Windows{0, 0, 0, 0}));
  EXPECT_EQ(of("llama", {{"sliding_window", 7}}), (Windows{0, 0, 0, 0}));
  const json qwen{{"sliding_window", 7}, {"max_window_layers", 1}};
  EXPECT_EQ(of("qwen2", qwen), (Windows{0, 0, 0, 0}));
  json on = qwen;
  on["use_sliding_window"] = true;
  EXPECT_EQ(of("qwen2", on), (Windows{0, 7, 7, 7}));
  EXPECT_EQ(of("smollm3", on), (Windows{0, 0, 0, 7}));
  on["layer_types"] = {"sliding_attention", "full_attention", "full_attention",
                       "sliding_attention"};
  EXPECT_EQ(of("qwen3", on), (Windows{7, 0, 0, 7}));
  EXPECT_EQ(
      of("gemma3_text", {{"sliding_window", 7}, {"sliding_window_pattern", 2}}),
      (Windows{7, 0, 7, 0}));
  // so many on both sides together, and the token itself
  EXPECT_EQ(of("modernbert", {{"local_attention", 6}}), (Windows{0, 4, 4, 0}));
  EXPECT_EQ(of("modernbert", {{"local_attention", 7}}), (Windows{0, 4, 4, 0}));
}

TEST(ModelConfig, RefusesNumbersThatMakeNoModel) {
  const auto gpt2 = [](const char* key, json value) {
    return json{{"model_type", "gpt2"}, {key, std::move(value)}};
  };
  for (const json& bad : {json(0), json(-1), json(1.5), json("12"), json(true),
                          json(18446744073709551615u), json(1LL << 40),
                          json(std::vector<int>{12})}) {
    for (const char* key : {"n_layer", "n_embd", "n_head", "vocab_size"})
      EXPECT_TRUE(says(refusal(gpt2(key, bad)), {"c.json", key})) << bad;
  }
  EXPECT_TRUE(says(refusal(gpt2("n_head", 7)), {"768", "7"}));
  for (const json& bad : {json(0.0), json(-1e-5), json("tiny")})
    EXPECT_TRUE(says(refusal(gpt2("layer_norm_epsilon", bad)), {"epsilon"}));
  EXPECT_TRUE(says(refusal({{"model_type", "llama"},
                            {"num_attention_heads", 8},
                            {"num_key_value_heads", 3}}),
                   {"8", "3"}));
  EXPECT_TRUE(
      says(refusal({{"model_type", "llama"}, {"head_dim", 5}}), {"odd", "5"}));
  EXPECT_TRUE(says(refusal({{"model_type", 3}}), {"model_type"}));
  EXPECT_TRUE(says(refusal(json::array({1})), {"object"}));
  for (const char* text : {"", "{", "{\"model_type\": \"gpt2\"", "\xff\xfe"})
    EXPECT_TRUE(says(
        message_of<InputError>([&] { parse_model_config(text, "c.json"); }),
        {"c.json", "JSON"}));
}

}  // namespace config_test
}  // namespace lipscope
