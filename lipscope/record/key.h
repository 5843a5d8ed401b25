#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lipscope {

/// The question that a record answers, as text: two records with the same key
/// are the same piece of work, and --resume does it once. A number depends on
/// its key alone, to the last bit.
///
/// In the key is everything that can change a number:
///
///   schema, command, version     what is computed, and by which code (the
///                                commit is noted beside them, not compared)
///   model_sha256                 the weights; where they are made up and have
///                                no file, `model`: the recipe
///   layer, head, map, kind,      which map of these weights, in which norm
///   mask, norm, d
///   n, input.from, input.sha256  the tokens: the content of this very window
///                                or matrix
///   delta, seed, dtype, scope    how it is computed, and of what it speaks
///   quantity, value_of, fits,    what the number is
///   confidence
///   parameters                   all other options that change a number: each
///                                group of options has one function that
///                                writes them (subject, selection, solver, …)
///
/// Not in the key, because it cannot change a number, is
///
///   where things are             the path of a folder or text whose content
///                                is hashed, input.offset, sample
///   what was measured            lower, upper, radius_max, radius_rms, …
///   how much time there was      --budget: what a budget cut is no answer
///   how it is shown              --json, --quiet, --out, …
///   how many work on it          --threads
std::string key_of(const nlohmann::ordered_json& record);

/// The SHA-256 of the question that a piece of work answers, which a plan calls
/// its key. It is that of key_of, but for commands that answer one question by
/// several records: a bound is known when it is found, so `bound` asks for all
/// bounds of a map, and `search` asks for the best input and records starts
/// that led to it.
std::string question_key(const nlohmann::ordered_json& record);

/// Where this run met the question: the names under which it asks. A known
/// answer is written down once for each place.
std::string place_of(const nlohmann::ordered_json& record);

/// The record `found` with the names under which `asked` asks its question.
nlohmann::ordered_json at_the_place_of(const nlohmann::ordered_json& asked,
                                       nlohmann::ordered_json found);

/// Whether nothing is left to do for the question of this record: it was not
/// cut short by --budget.
bool is_complete(const nlohmann::ordered_json& record);

}  // namespace lipscope
