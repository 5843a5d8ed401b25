#pragma once

#include "lipscope/theory/gram_pieces.h"

namespace lipscope {

/// (Σ ‖LᵀT_ii'L‖_F²)^{1/2}/s² over all ordered pairs of two tokens i ≠ i', and
/// what it may be wrong by.
struct PairsSize {
  double found = 0.0, error = 0.0;
};

/// From the pieces of gram_pieces.h, for parts of one pull that are prepared.
///
/// Columns of T_ii'L are made from pieces and multiplied by Lᵀ
/// (gram_triangle.h), in f32. With D = H·w that takes some D²(2n + 5H) + D³
/// operations for a pair, D³ of them for the last product, where making T in
/// f64 and multiplying it from both sides takes 2nD² and 2D³. (BERT-base at
/// n = 64: 0.14·10⁹ beside 0.45·10⁹. Numbers of 8 bits in the last product,
/// which some CPUs multiply twice as fast, would save a fifth of all the time.
/// But what is lost by them, measured and not only bounded, makes the bounds of
/// layers of MiniLM and BERT-base larger by up to 3 %: they are not used.)
///
/// Rounding. A number of T_ii'L is a sum of products of at most four pieces. On
/// its way from the pieces to the sum a product passes at most m roundings: of
/// each piece when it is cast, and of three products of matrices with sums of
/// H, n or n + 3H terms. So it errs by at most γ_m = 1.1 m 2⁻²⁴ times the same
/// sum of absolute values, whose Frobenius norm, as ‖|X||Y|‖_F ≤ ‖X‖_F‖Y‖_F, is
/// for rows of head h at most
///
///   σ^h = |ẑ_i^h| ( Σ_g |p̂_i^h·p̂_i'^g| |Y_i'^g| + |(E_i'ᵀp̂_i^h)ᵀL|/s
///                   + Σ_g |P_i'^g| |û_i^hgL_g|/s )
///         + Σ_g |û_i'^gh|/s |P_i^h| |Y_i'^g|
///         + Σ_g |(E_iᵀp̂_i'^g)_h|/s |Y_i'i^g|
///         + Σ_g (Σ_j P^h_ijP^g_i'j) |W_V^hᵀW_V^gL_g|/s²
///         + Σ_g P^g_i'i |(E_iᵀU)_hgL_g|/s² + P^h_ii' |((E_i'ᵀU)ᵀL)_h|/s²
///
/// with Frobenius norms of the pieces, and
///
///   |found − exact| ≤ γ_m‖L‖(Σ σ²)^{1/2} + β(Σ‖fl(TL)‖_F²)^{1/2}
///
/// with β = (γ' + 2⁻²³)|L|_F of gram_triangle.h.
///
/// Numbers below 2⁻¹²⁶ may be lost. Where all pieces and weights are below 2²⁰
/// each costs a number at most 2⁻¹²⁶⁺⁶⁰; larger ones, or what overflows, make
/// the error infinite.
PairsSize size_by_pieces(const GramParts& parts, const LayerParts& l,
                         const LayerAt& at, const Matrix& triangular,
                         const Triangle& triangle, double scale);

/// How many columns of L are taken at a time, and the memory that all takes.
Index pieces_columns(const LayerParts& l, Index n);
double pieces_bytes(const LayerParts& l, Index n);

}  // namespace lipscope
