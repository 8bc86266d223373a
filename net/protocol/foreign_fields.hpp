// foreign_fields: fields that clients of other servers send (llama.cpp, Ollama, vLLM, TGI, OpenAI,
// Anthropic) and that twill neither supports nor refuses. Any thread may call these functions.
//
// The fields are ignored, because most clients always send them. The first time that the process
// sees one of the fields, it logs the field's name, so that users can find out why the field has no
// effect.
#pragma once

#include <span>
#include <string_view>

#include "net/protocol/field_table.hpp"

namespace twill::net {

void note_ignored(const fields& from);

/// Logs only the fields that `rows` marks as having no effect. Use it for an API that supports some
/// of the fields that other APIs ignore.
void note_ignored(const fields& from, std::span<const field_row> rows);

/// The rows of all ignored fields; the note of each row is the server that the field comes from.
std::span<const field_row> ignored_rows();

} // namespace twill::net
