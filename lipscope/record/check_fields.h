#pragma once

#include <nlohmann/json.hpp>

namespace lipscope {

/// InputError, with the field and what stands there, unless every field of a
/// record that lipscope knows is of its type: files of records are edited by
/// hand, joined and cut. Fields that it does not know may be anything.
///
/// A record that a run goes on with (--resume) must also have what
/// every record has; one that is only shown may lack fields.
enum class RecordUse { shown, resumed };
void check_fields(const nlohmann::ordered_json& record, RecordUse use);

}  // namespace lipscope
