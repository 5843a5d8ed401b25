#pragma once

#include <cmath>

#include "tests/model/folders.h"

/// The three architectures once more, as their papers draw them and with
/// nothing of the library: rows as loops, tensors as they are stored.
namespace lipscope::test {

struct Reference {
  const ModelConfig& c;
  const Tensors& t;

  const Matrix& at(const std::string& name) const { return t.at(name).values; }

  Matrix affine(const Matrix& x, const std::string& name) const {
    Matrix y = c.architecture == Architecture::gpt2
                   ? Matrix(x * at(name + ".weight"))
                   : Matrix(x * at(name + ".weight").transpose());
    if (t.contains(name + ".bias")) y.rowwise() += at(name + ".bias").row(0);
    return y;
  }

  Matrix norm(const Matrix& x, const std::string& name) const {
    Matrix y = x;
    for (Index i = 0; i < x.rows(); ++i) {
      const bool rms = c.architecture == Architecture::llama;
      const double mean = rms ? 0.0 : x.row(i).mean();
      double square = 0;
      for (Index j = 0; j < x.cols(); ++j)
        square += (x(i, j) - mean) * (x(i, j) - mean) / x.cols();
      for (Index j = 0; j < x.cols(); ++j)
        y(i, j) = (x(i, j) - mean) / std::sqrt(square + c.epsilon) *
                      at(name + ".weight")(0, j) +
                  (rms ? 0.0 : at(name + ".bias")(0, j));
    }
    return y;
  }

  double act(double x) const {
    switch (c.activation) {
      case Activation::gelu:
        return x * (1 + std::erf(x / std::sqrt(2.0))) / 2;
      case Activation::gelu_tanh:
        return x *
               (1 + std::tanh(std::sqrt(2 / M_PI) *
                              (x + 0.044715 * std::pow(x, 3)))) /
               2;
      case Activation::silu:
        return x / (1 + std::exp(-x));
      default:
        return std::max(x, 0.0);
    }
  }

  // one feature of a head, turned to its place if there are rotary positions
  double turned(const Matrix& z, Index row, Index head, Index i) const {
    const Index k = c.head_width, half = k / 2, base = head * k;
    if (!c.rope) return z(row, base + i);
    const double angle = row * std::pow(c.rope->theta, -2.0 * (i % half) / k);
    return i < half ? z(row, base + i) * std::cos(angle) -
                          z(row, base + i + half) * std::sin(angle)
                    : z(row, base + i) * std::cos(angle) +
                          z(row, base + i - half) * std::sin(angle);
  }

  Matrix mix(const Matrix& q, const Matrix& k, const Matrix& v) const {
    const Index n = q.rows(), w = c.head_width;
    Matrix y = Matrix::Zero(n, c.heads * w);
    for (Index h = 0; h < c.heads; ++h) {
      const Index g = h / (c.heads / c.key_heads);
      for (Index i = 0; i < n; ++i) {
        const Index seen = c.architecture == Architecture::bert ? n : i + 1;
        Vector p(seen);
        for (Index j = 0; j < seen; ++j) {
          double s = 0;
          for (Index e = 0; e < w; ++e)
            s += turned(q, i, h, e) * turned(k, j, g, e);
          p[j] = std::exp(s / std::sqrt(static_cast<double>(w)));
        }
        p /= p.sum();
        for (Index j = 0; j < seen; ++j)
          y.block(i, h * w, 1, w) += p[j] * v.block(j, g * w, 1, w);
      }
    }
    return y;
  }

  // the inputs of the layers, and the last hidden state, of one sequence
  std::vector<Matrix> states(const std::vector<Index>& ids) const {
    const Index n = static_cast<Index>(ids.size());
    Matrix x(n, c.width);
    const auto each = [&](const std::string& table, auto row) {
      for (Index i = 0; i < n; ++i) x.row(i) += at(table).row(row(i));
    };
    x.setZero();
    const auto token = [&](Index i) { return ids[i]; };
    const auto place = [](Index i) { return i; };
    std::vector<Matrix> all;
    if (c.architecture == Architecture::gpt2) {
      each("wte.weight", token);
      each("wpe.weight", place);
      for (Index l = 0; l < c.layers; ++l) {
        all.push_back(x);
        const std::string h = "h." + std::to_string(l) + ".";
        const Matrix qkv = affine(norm(x, h + "ln_1"), h + "attn.c_attn");
        const Index d = c.width;
        x +=
            affine(mix(qkv.leftCols(d), qkv.middleCols(d, d), qkv.rightCols(d)),
                   h + "attn.c_proj");
        Matrix m = affine(norm(x, h + "ln_2"), h + "mlp.c_fc");
        m = m.unaryExpr([&](double e) { return act(e); });
        x += affine(m, h + "mlp.c_proj");
      }
      all.push_back(norm(x, "ln_f"));
    } else if (c.architecture == Architecture::bert) {
      each("embeddings.word_embeddings.weight", token);
      each("embeddings.position_embeddings.weight", place);
      each("embeddings.token_type_embeddings.weight", [](Index) { return 0; });
      x = norm(x, "embeddings.LayerNorm");
      for (Index l = 0; l < c.layers; ++l) {
        all.push_back(x);
        const std::string e = "encoder.layer." + std::to_string(l) + ".";
        const std::string self = e + "attention.self.";
        const Matrix y = mix(affine(x, self + "query"), affine(x, self + "key"),
                             affine(x, self + "value"));
        x = norm(x + affine(y, e + "attention.output.dense"),
                 e + "attention.output.LayerNorm");
        Matrix m = affine(x, e + "intermediate.dense");
        m = m.unaryExpr([&](double z) { return act(z); });
        x = norm(x + affine(m, e + "output.dense"), e + "output.LayerNorm");
      }
      all.push_back(x);
    } else {
      each("embed_tokens.weight", token);
      for (Index l = 0; l < c.layers; ++l) {
        all.push_back(x);
        const std::string e = "layers." + std::to_string(l) + ".";
        const Matrix in = norm(x, e + "input_layernorm");
        const std::string self = e + "self_attn.";
        x +=
            affine(mix(affine(in, self + "q_proj"), affine(in, self + "k_proj"),
                       affine(in, self + "v_proj")),
                   self + "o_proj");
        const Matrix z = norm(x, e + "post_attention_layernorm");
        Matrix g = affine(z, e + "mlp.gate_proj");
        g = g.unaryExpr([&](double t_) { return act(t_); });
        x += affine(g.cwiseProduct(affine(z, e + "mlp.up_proj")),
                    e + "mlp.down_proj");
      }
      all.push_back(norm(x, "norm"));
    }
    return all;
  }
};

}  // namespace lipscope::test
