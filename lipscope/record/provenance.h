#pragma once

#include <nlohmann/json.hpp>
#include <string>

/// What a record in a file says beside its numbers: who made it, and whether
/// its line is still as it was written. None of it belongs to the key.
namespace lipscope {

/// A record as it goes into a file: with the command line, the machine, the
/// build and the kind of CPU that it is from.
nlohmann::ordered_json with_provenance(nlohmann::ordered_json record);

/// The same without these, and without the hash of its line: as a run has it
/// in memory.
nlohmann::ordered_json without_provenance(nlohmann::ordered_json record);

/// The build and the kind of CPU that a record is from, in words. Numbers of
/// one build on one kind of CPU are the same to the last bit; others differ in
/// the last digits, as other instructions round in another order. Files of
/// older versions do not name the build, and it is then the commit alone.
std::string made_on(const nlohmann::ordered_json& record);

/// What one question was answered, without what may differ where one build
/// answers twice on one kind of CPU: times, machines, and the names under which
/// it was asked (place_of).
nlohmann::ordered_json answer_of(nlohmann::ordered_json record);

/// The record with `line_sha256`, the hash of all its other fields: a worker's
/// line travels through other hands before it is merged.
nlohmann::ordered_json sealed(nlohmann::ordered_json record);

/// InputError if the record has such a hash and it is not that of its fields.
void check_seal(const nlohmann::ordered_json& record);

}  // namespace lipscope
