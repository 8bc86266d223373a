// kv_wire: KV events as vLLM's publisher writes them (vllm/distributed/kv_events.py), in
// MessagePack: [time in s, [event, ...], data-parallel rank], cut into messages of bounded size.
//
// Pure. Exactly the members that every known reader knows: vllm-router 0.1.17 refuses a whole
// message, and forgets the worker, for one member more. A block has an event of its own, since that
// router finds no branch that begins within an event's blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "actors/port/kv_events.hpp"

namespace twill::net {

/// How an event is written (`kv.events_format`): {"type": "BlockStored", ...} or ["BlockStored",
/// ...].
enum class kv_event_form : std::uint8_t { map, array };

/// A message is ended once its payload has so many bytes.
inline constexpr std::size_t longest_kv_payload = 48 * 1024;

/// The payloads of all events, in order; none for no event. `unix_s` is when they were taken.
std::vector<std::string> kv_payloads(std::span<const actors::kv_event> events, double unix_s,
                                     kv_event_form form);

/// The second frame of a message: its number, 8 bytes, big-endian.
std::string kv_sequence(std::uint64_t number);

} // namespace twill::net
