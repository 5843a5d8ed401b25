#pragma once

#include <map>
#include <optional>

#include "lipscope/audit/selection.h"
#include "lipscope/audit/subject.h"
#include "lipscope/model/layer.h"

namespace lipscope::audit {

/// The selected maps, made as they are asked for. The weights of a model's
/// layers stay in memory if all of them fit into a gigabyte.
class Maps {
 public:
  /// Borrows subject and selection, which must outlive this.
  Maps(const Subject& subject, const Selection& selection, int threads,
       std::uint64_t memory);

  template <class Real>
  MapPtr<Real> make(std::optional<Index> layer, std::optional<Index> head,
                    Index sequences);

  /// The weights of a layer, as far as the map needs them; of a lone layer the
  /// attention. Until the next layer is asked for, unless all are kept.
  const LayerWeights& weights(std::optional<Index> layer);
  bool keeps_layers() const { return keep_; }

 private:
  const Subject& subject_;
  const Selection& selection_;
  int threads_;
  std::uint64_t memory_;
  bool keep_;
  std::map<Index, LayerWeights> layers_;
};

}  // namespace lipscope::audit
