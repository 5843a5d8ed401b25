#pragma once

#include <compare>
#include <map>
#include <optional>

#include "lipscope/audit/selection.h"
#include "lipscope/audit/subject.h"
#include "lipscope/model/layer.h"
#include "lipscope/theory/layer_certificates.h"

namespace lipscope::audit {

/// A layer, or the whole model; a head, or all of them.
struct Part {
  std::optional<Index> layer = {}, head = {};
  auto operator<=>(const Part&) const = default;
};

/// All that is made of the weights of a subject's parts: the weights of a layer
/// are read once, and maps and certificates are made of them once. They stay in
/// memory if those of all layers may (Subject::keeps_layers). Otherwise those
/// of one layer do, for one number of sequences: asking for another layer, or
/// for another number of sequences, lets them go.
class Maps {
 public:
  /// Borrows subject and selection, which must outlive this.
  Maps(const Subject& subject, const Selection& selection, int threads,
       std::uint64_t memory);

  bool keeps_layers() const { return subject_.keeps_layers; }

  /// The weights of a layer, as far as the selected map needs them; of a lone
  /// layer the attention. Once they are read several threads may ask for
  /// them.
  const LayerWeights& weights(std::optional<Index> layer);

  /// A selected map, for the caller to keep.
  template <class Real>
  MapPtr<Real> make(const Part& part, Index sequences);

  /// The selected map in f64 and, to search by, in f32.
  struct Pair {
    MapPtr<double> witness;
    MapPtr<float> search;  ///< nothing unless `prepare` was asked for it
  };

  /// Makes a map for so many sequences, and what certificates need of the
  /// weights. Not while other threads ask for what was made.
  void prepare(const Part& part, Index sequences, bool search);
  void prepare_certificates(const Part& part);

  /// Lets go of everything that was made.
  void forget() { made_.clear(); }

  /// What was prepared.
  const Pair& pair(const Part& part, Index sequences) const;
  const LayerCertificates& certificates(const Part& part) const;

 private:
  struct Made {
    std::optional<LayerWeights> weights;  // of all heads
    std::map<Index, Pair> pairs;          // by sequences
    std::optional<LayerCertificates> certificates;
  };

  // after those of other layers are let go, if not all are kept
  Made& made(const Part& part);

  const Subject& subject_;
  const Selection& selection_;
  int threads_;
  std::uint64_t memory_;
  std::map<Part, Made> made_;
};

}  // namespace lipscope::audit
