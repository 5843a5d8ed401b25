#pragma once

namespace lipscope {

struct AttentionWeights;
struct Stack;

/// The number that the released code of Newhouse25 prints as the constant of a
/// transformer, from the norms of its weights, between the largest root mean
/// squares of a token's features in and out, for tokens of root mean square at
/// most r. It is not a bound, and nothing here is built on it: it is what
/// their models are compared by.
///
/// With norms ‖·‖ between root mean squares, α the share of a layer, and heads
/// [P_h v_h] W_O/3 with scores q·k/k, layer by layer,
///
///   attention  L ← (1 − α)L + αL ‖W_O‖‖W_V‖(1 + 2r²‖W_Q‖‖W_K‖)/3
///              r ← (1 − α)r + αr ‖W_O‖‖W_V‖/3
///   MLP        L ← (1 − α)L + αL ‖W_up‖‖W_down‖/1.1289,   r the same
///
/// and L ← L‖W_head‖ at the end. Two steps do not follow in this norm:
///
/// - the MLP is GELU/1.1289 between its matrices, whose slope is at most 1
///   already: 1.1289 is divided out twice;
/// - 2r²‖W_Q‖‖W_K‖ takes r, a mean over all features, for the root mean square
///   of one head's query and key. Those of one head can have √H times as much,
///   where the token has all its length in that head, and then scores reach H
///   times as far.
///
/// `experiments/newhouse_identity.cpp` shows what the second does to weights
/// that are identities. That a trained model exceeds its printed constant is
/// not shown.
///
/// Here the factors 1/3, 1/k and 1/1.1289 are in the matrices of the stack
/// (train/newhouse25_limits.h), and are taken out of them again. Throws
/// std::invalid_argument for a stack that is no such transformer.
double newhouse25_formula(const Stack& stack, double r = 1.0);

/// The same of one attention layer alone, without what it is joined with:
/// ‖W_O‖‖W_V‖(1 + 2r²‖W_Q‖‖W_K‖)/3.
double newhouse25_attention(const AttentionWeights& weights, double r = 1.0);

}  // namespace lipscope
