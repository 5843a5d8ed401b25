#pragma once

#include <nlohmann/json.hpp>
#include <string>

/// Records of schema 1 have other names for bounds that lipscope proves:
///
///   column_sums               own_ball
///   column_sums_meanfield     own_meanfield
///   column_sums_causal        own_causal
///   hardy_meanfield           own_causal_meanfield
///   row_sums                  own_token
///   l2_diagonal_apart         own_l2
///   l2_row_sums               own_l2_token
///   l2_kernel                 own_l2_kernel
///   cosine_column_sums        own_cosine
///   covariances               own_local
///   split_paths               own_split
///   token_pairs               own_blocks
///
/// Records are read with the present names.
namespace lipscope {

/// The present name of a bound. Names inside others are replaced too:
/// "model(block(own_ball))" is "model(block(column_sums))". A name that never
/// changed stays as it is.
std::string present_bound_name(const std::string& name);

/// The present word of --certificate: "pairs" for "blocks", "covariances" for
/// "local"; any other word stays as it is.
std::string present_certificate_word(const std::string& word);

/// Gives the record the present names, wherever a record names bounds:
/// lower_by, upper_by; parameters.bound, .series and .certificate;
/// details.upper_whp_by, .certificates and .bounds_log10. Fields of another
/// type are left alone.
void use_present_bound_names(nlohmann::ordered_json& record);

}  // namespace lipscope
