// foreign_fields: fields that requests to other servers have (llama.cpp, Ollama, vLLM, TGI, OpenAI,
// Anthropic) and twill neither honours nor refuses. Any thread.
//
// They are ignored, since most clients send them as a matter of course. Each is named in the log
// once in the life of the process, so that nobody wonders why it has no effect.
#pragma once

#include <span>
#include <string_view>

#include "net/protocol/field_table.hpp"

namespace twill::net {

void note_ignored(const fields& from);

/// Notes only fields that these rows say have no effect, for an API that reads others of the names.
void note_ignored(const fields& from, std::span<const field_row> rows);

/// Their names, each with the server that it comes from as its note.
std::span<const field_row> ignored_rows();

} // namespace twill::net
