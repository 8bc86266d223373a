// The only list of message types; a new type is added at its end. Messages never leave this
// process, so they have no code for serialisation, and CAF demands an explicit declaration of this
// for each type.
#pragma once

#include <caf/allowed_unsafe_message_type.hpp>

#include "actors/messages.hpp"

namespace twill::actors {
// These messages are defined in actors/interfaces.hpp, because they carry actor handles.
struct executor_ready;
struct scheduler_replaced;
struct offloader_replaced;
} // namespace twill::actors

CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::start_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::cancel_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::deadline_passed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::abort_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::submit_prompt)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::prompt_queued)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::prompt_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::token_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::finish_choice)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::release_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::pause_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::resume_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::kv_change)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::block_request)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::kv_grant)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::step_plan_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::run_next)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::skip_sequences)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::step_result_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::load_model)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::model_loaded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::load_failed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::executor_broken)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::watch_deadlines)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::check_deadlines)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::check_drained)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::abort_all_requests)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::stop_engine)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::executor_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::prompt_scored)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::compile_grammar)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::grammar_ready)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::compile_next)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::wake_supervisor)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::scheduler_replaced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::encoded_prompt_ptr)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::waited_too_long)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::fetch_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::blocks_fetched)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::prefetch_blocks)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::blocks_spilled)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::open_tiers)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::offloader_replaced)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::describe_scheduler)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::describe_leases)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::ask_ledger)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::list_states)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::listed_states)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::kv_leases)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::step_computed)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::grammar_overdue)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(twill::actors::prompt_pooled)
