// kv_wire: encodes KV events in the format of vLLM's publisher (vllm/distributed/kv_events.py), in
// MessagePack: [time in s, [event, ...], data-parallel rank]. The events are split into messages of
// bounded size.
//
// The functions are pure. Events have only those members that every known reader accepts:
// vllm-router 0.1.17 refuses a whole message, and drops the worker, because of one additional
// member. Each block has an event of its own, because that router does not find prompts that share
// only some of the blocks of one event.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/port/kv_events.hpp"

namespace twill::net {

/// The form of an event (`kv.events_format`): a map {"type": "BlockStored", ...} or an array
/// ["BlockStored", ...].
enum class kv_event_form : std::uint8_t { map, array };

/// The largest payload in bytes, unless a single event is larger.
inline constexpr std::size_t longest_kv_payload = 48 * 1024;

/// Returns the payloads for all events, in order; none if there are no events. `unix_s` is the time
/// at which the events were taken from the engine's log.
std::vector<std::string> kv_payloads(std::span<const actors::kv_event> events, double unix_s,
                                     kv_event_form form);

/// The second frame of a message: the message's number as 8 bytes, big-endian.
std::string kv_sequence(std::uint64_t number);

} // namespace twill::net
