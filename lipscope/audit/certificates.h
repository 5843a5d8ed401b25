#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lipscope/audit/maps.h"
#include "lipscope/audit/selection.h"
#include "lipscope/record/record.h"
#include "lipscope/theory/layer_certificates.h"

namespace lipscope::audit {

/// What is proved from above at the inputs of `measure`, beside what is
/// measured there: in the 2-norm, and in the token norm for attention alone,
/// over the ball that holds the input.
class Certificates {
 public:
  /// `which` as --certificate has it: auto, none, split, pairs, covariances,
  /// tight, exact or all.
  /// InputError for other words, and for a certificate that the selected map
  /// does not have. Borrows subject, selection and maps, which must outlive
  /// this.
  Certificates(const Subject& subject, const Selection& selection, Maps& maps,
               const std::string& which, int threads);

  /// Makes what depends on the weights alone. After that `add` for this part
  /// may run beside others. InputError where the certificate that was asked for
  /// takes more than its limit at n tokens.
  void prepare(const Part& part, Index n);

  /// Whether one input may need all threads and much memory: then inputs are
  /// certified one after another.
  bool large() const;

  /// Whether `add` would compute something for these.
  bool wanted(const std::vector<Record>& records) const;

  /// For records of the sequences that lie under one another in x: where a
  /// certificate is below `upper`, or there is none, it takes its place.
  /// Unless one was asked for by name, records that have an upper are left as
  /// they are. What was asked for is in details.certificates, each with its
  /// value, whichever is best. Whether anything was computed.
  bool add(std::vector<Record>& records, const Matrix& x,
           const Part& part) const;

 private:
  using Found = std::vector<Bound>;  // at one input

  Found found_at(const LayerCertificates& made, const Matrix& x) const;
  bool whole_model(const Part& part) const;
  std::vector<Found> of_layer(const Part& part, const Matrix& x,
                              Index count) const;
  std::vector<Found> of_model(const Matrix& x, Index count) const;

  const Subject& subject_;
  const Selection& selection_;
  Maps& maps_;
  std::string which_;
  int threads_;
};

}  // namespace lipscope::audit
